// Looks into DT_GNU_HASH, which every linker of the last fifteen years writes.
// Runs on: see module_symbols.h.  May not: take the loader's lock for longer than the walk.
#include "agent/interpose/module_symbols.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>

namespace ranktap::agent {
namespace {

struct Search {
  std::string_view symbol;
  std::span<const std::string_view> except;
  std::optional<std::string> found;
};

struct Tables {
  const uint32_t* hash = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
};

// glibc has relocated these pointers already, for all but the vdso; a small number is an offset.
template <typename Type>
const Type* At(ElfW(Addr) base, ElfW(Addr) pointer) {
  return reinterpret_cast<const Type*>(pointer < base ? base + pointer : pointer);
}

Tables ReadTables(const dl_phdr_info& info) {
  Tables tables;
  const auto* header = std::find_if(info.dlpi_phdr, info.dlpi_phdr + info.dlpi_phnum,
                                    [](const auto& part) { return part.p_type == PT_DYNAMIC; });
  if (header == info.dlpi_phdr + info.dlpi_phnum) return tables;
  const ElfW(Addr) base = info.dlpi_addr;
  for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(base + header->p_vaddr);
       entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_GNU_HASH) tables.hash = At<uint32_t>(base, value);
    if (entry->d_tag == DT_SYMTAB) tables.symbols = At<ElfW(Sym)>(base, value);
    if (entry->d_tag == DT_STRTAB) tables.strings = At<char>(base, value);
  }
  return tables;
}

uint32_t HashOf(std::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

// Buckets, then a chain of hashes whose last has bit 0 set, as in glibc's elf/dl-lookup.c. Only
// defined symbols stand in it.
bool Exports(const Tables& tables, std::string_view symbol) {
  if (tables.hash == nullptr || tables.symbols == nullptr || tables.strings == nullptr)
    return false;
  const uint32_t buckets = tables.hash[0], first = tables.hash[1], words = tables.hash[2];
  if (buckets == 0) return false;
  const uint32_t* const bucket = tables.hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* const chain = bucket + buckets;
  const uint32_t hash = HashOf(symbol);
  for (uint32_t at = bucket[hash % buckets]; at >= first; ++at) {
    const uint32_t entry = chain[at - first];
    const bool equal =
        (entry | 1) == (hash | 1) && tables.strings + tables.symbols[at].st_name == symbol;
    if (equal) return tables.symbols[at].st_shndx != SHN_UNDEF;
    if ((entry & 1) != 0) return false;
  }
  return false;
}

int Visit(dl_phdr_info* info, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const std::string_view path = info->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (std::ranges::any_of(search.except, [file](auto prefix) { return file.starts_with(prefix); }))
    return 0;
  if (!Exports(ReadTables(*info), search.symbol)) return 0;
  search.found = std::string(path);
  return 1;
}

}  // namespace

std::optional<std::string> FindExporter(std::string_view symbol,
                                        std::span<const std::string_view> except) {
  Search search{.symbol = symbol, .except = except, .found = std::nullopt};
  dl_iterate_phdr(&Visit, &search);
  return search.found;
}

}  // namespace ranktap::agent
