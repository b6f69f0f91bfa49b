#include "collector/stacks/live_symbols.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace ranktap::collector {
namespace {

struct Tables {
  uint64_t bias = 0, symbols = 0, names = 0, hash = 0;
};

std::optional<Tables> FindTables(proto::MemoryReader& memory, uint64_t base) {
  Elf64_Ehdr header;
  if (!memory.Read(base, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }
  Tables tables{.bias = header.e_type == ET_EXEC ? 0 : base};
  uint64_t dynamic = 0, entries = 0;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!memory.Read(base + header.e_phoff + i * sizeof(part), &part)) return std::nullopt;
    if (part.p_type != PT_DYNAMIC) continue;
    dynamic = tables.bias + part.p_vaddr;
    entries = part.p_memsz / sizeof(Elf64_Dyn);
  }
  constexpr uint64_t kMostEntries = 4096;
  for (uint64_t i = 0; i < std::min(entries, kMostEntries); ++i) {
    Elf64_Dyn entry;
    if (!memory.Read(dynamic + i * sizeof(entry), &entry) || entry.d_tag == DT_NULL) break;
    // glibc's loader has added the bias, musl's has not.
    const uint64_t address =
        entry.d_un.d_ptr < tables.bias ? entry.d_un.d_ptr + tables.bias : entry.d_un.d_ptr;
    if (entry.d_tag == DT_SYMTAB) tables.symbols = address;
    if (entry.d_tag == DT_STRTAB) tables.names = address;
    if (entry.d_tag == DT_GNU_HASH) tables.hash = address;
  }
  if (tables.symbols == 0 || tables.names == 0 || tables.hash == 0) return std::nullopt;
  return tables;
}

uint32_t HashOf(std::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
  return hash;
}

bool IsNamed(proto::MemoryReader& memory, uint64_t at, std::string_view name) {
  std::array<char, 64> text{};
  if (name.size() >= text.size() || !memory.Read(at, text.data(), name.size() + 1)) return false;
  return std::string_view(text.data()) == name;
}

// In DT_GNU_HASH: four numbers, a filter of 64-bit words, the buckets, the chains.
void Find(proto::MemoryReader& memory, const Tables& tables, LiveSymbol* symbol) {
  struct {
    uint32_t buckets, first, filter_words, shift;
  } head;
  if (!memory.Read(tables.hash, &head) || head.buckets == 0) return;
  const uint32_t hash = HashOf(symbol->name);
  const uint64_t buckets = tables.hash + sizeof(head) + uint64_t{8} * head.filter_words;
  const uint64_t chains = buckets + uint64_t{4} * head.buckets;
  uint32_t index = 0;
  if (!memory.Read(buckets + uint64_t{4} * (hash % head.buckets), &index)) return;
  constexpr int kLongestChain = 4096;
  for (int i = 0; i < kLongestChain && index >= head.first; ++i, ++index) {
    uint32_t found = 0;
    if (!memory.Read(chains + uint64_t{4} * (index - head.first), &found)) return;
    if ((found | 1) == (hash | 1)) {
      Elf64_Sym entry;
      if (!memory.Read(tables.symbols + uint64_t{index} * sizeof(entry), &entry)) return;
      if (entry.st_shndx != SHN_UNDEF &&
          IsNamed(memory, tables.names + entry.st_name, symbol->name)) {
        symbol->address = tables.bias + entry.st_value;
        symbol->bytes = entry.st_size;
        return;
      }
    }
    if ((found & 1) != 0) return;
  }
}

}  // namespace

bool FindLiveSymbols(proto::MemoryReader& memory, uint64_t base, std::span<LiveSymbol> symbols) {
  const auto tables = FindTables(memory, base);
  if (!tables) return false;
  for (LiveSymbol& symbol : symbols) Find(memory, *tables, &symbol);
  return true;
}

}  // namespace ranktap::collector
