// Walks ELF dynamic sections.
// Runs on: see got_patcher.h.  May not: run in a hook.
#include "agent/interpose/got_patcher.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace ranktap::agent {
namespace {

constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr uint32_t kGlobDat = R_X86_64_GLOB_DAT;
constexpr uint32_t kAddress64 = R_X86_64_64;

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * jump = nullptr;
  size_t jump_bytes = 0;
  const ElfW(Rela) * other = nullptr;
  size_t other_bytes = 0;
};

struct Module {
  ElfW(Addr) base;
  uintptr_t relro_begin = 0, relro_end = 0;
  Tables tables;
};

// The first two characters of a name, as one bit of 64. A process of C++ imports thousands of names
// that begin with "_Z": to compare them all took 9 % of a short traced program's time, this 3 %.
uint64_t Beginning(const char* name) {
  const auto second = static_cast<unsigned char>(name[0] == '\0' ? '\0' : name[1]);
  return uint64_t{1} << ((static_cast<unsigned char>(name[0]) ^ (second << 1)) & 63);
}

uint64_t Beginnings(std::span<const GotHook> hooks) {
  uint64_t all = 0;
  for (const GotHook& hook : hooks) all |= Beginning(hook.symbol.data());
  return all;
}

struct Work {
  std::span<const GotHook> hooks;
  std::span<const std::string_view> except{};
  std::string_view only{};
  PatchedModules* done = nullptr;
  const void* address = nullptr;  // null: any module
  uint64_t beginnings = Beginnings(hooks);
  GotPatchResult result{};
};

// glibc has relocated these pointers already, for all but the vdso; a small number is an offset.
template <typename Type>
const Type* At(ElfW(Addr) base, ElfW(Addr) pointer) {
  return reinterpret_cast<const Type*>(pointer < base ? base + pointer : pointer);
}

bool ReadModule(const dl_phdr_info& info, Module& module) {
  const ElfW(Dyn)* dynamic = nullptr;
  module.base = info.dlpi_addr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
    } else if (header.p_type == PT_GNU_RELRO) {
      module.relro_begin = info.dlpi_addr + header.p_vaddr;
      module.relro_end = module.relro_begin + header.p_memsz;
    }
  }
  if (dynamic == nullptr) return false;
  Tables& tables = module.tables;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        tables.symbols = At<ElfW(Sym)>(info.dlpi_addr, value);
        break;
      case DT_STRTAB:
        tables.strings = At<char>(info.dlpi_addr, value);
        break;
      case DT_JMPREL:
        tables.jump = At<ElfW(Rela)>(info.dlpi_addr, value);
        break;
      case DT_PLTRELSZ:
        tables.jump_bytes = dynamic->d_un.d_val;
        break;
      case DT_RELA:
        tables.other = At<ElfW(Rela)>(info.dlpi_addr, value);
        break;
      case DT_RELASZ:
        tables.other_bytes = dynamic->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return tables.symbols != nullptr && tables.strings != nullptr;
}

bool Write(const Module& module, uintptr_t slot, void* value) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = slot & ~(page - 1);
  const size_t bytes = ((slot + sizeof(void*) + page - 1) & ~(page - 1)) - begin;
  const bool read_only = slot >= module.relro_begin && slot < module.relro_end;
  if (read_only && mprotect(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  // Another thread may be calling through the slot.
  std::atomic_ref(*reinterpret_cast<void**>(slot)).store(value, std::memory_order_release);
  if (read_only) mprotect(reinterpret_cast<void*>(begin), bytes, PROT_READ);
  return true;
}

void PatchRelocations(const Module& module, const ElfW(Rela) * first, size_t bytes, Work& work,
                      bool& imports) {
  for (size_t i = 0; first != nullptr && i < bytes / sizeof(ElfW(Rela)); ++i) {
    const ElfW(Rela)& relocation = first[i];
    const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
    if (type != kJumpSlot && type != kGlobDat && type != kAddress64) continue;
    const ElfW(Sym)& symbol = module.tables.symbols[ELF64_R_SYM(relocation.r_info)];
    const char* const name = module.tables.strings + symbol.st_name;
    if ((Beginning(name) & work.beginnings) == 0) continue;
    const auto hook = std::ranges::find(work.hooks, std::string_view(name), &GotHook::symbol);
    if (hook == work.hooks.end()) continue;
    // A module's own definition is not an import.
    if (symbol.st_shndx != SHN_UNDEF && !hook->also_at_home) continue;
    imports = true;
    const uintptr_t slot = module.base + relocation.r_offset;
    if (*reinterpret_cast<void**>(slot) == hook->replacement) continue;
    if (Write(module, slot, hook->replacement)) {
      ++work.result.slots;
    } else {
      ++work.result.failures;
    }
  }
}

bool IsExcepted(const dl_phdr_info& info, const Work& work) {
  const std::string_view path = info.dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (file.starts_with("libranktap") || !file.starts_with(work.only)) return true;
  return std::ranges::any_of(work.except,
                             [file](std::string_view prefix) { return file.starts_with(prefix); });
}

bool IsDone(const dl_phdr_info& info, PatchedModules& done) {
  if (std::exchange(done.unloads, info.dlpi_subs) != info.dlpi_subs) done.Clear();
  // The address of a program that is not position independent is 0.
  return info.dlpi_addr != 0 && !done.Add(info.dlpi_addr);
}

bool Holds(const dl_phdr_info& info, const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address) - info.dlpi_addr;
  return std::ranges::any_of(
      std::span(info.dlpi_phdr, info.dlpi_phnum), [at](const ElfW(Phdr) & header) {
        return header.p_type == PT_LOAD && at - header.p_vaddr < header.p_memsz;
      });
}

int VisitModule(dl_phdr_info* info, size_t, void* data) {
  Work& work = *static_cast<Work*>(data);
  if (work.address != nullptr && !Holds(*info, work.address)) return 0;
  if (work.done != nullptr && IsDone(*info, *work.done)) return 0;
  Module module{};
  if (IsExcepted(*info, work) || !ReadModule(*info, module)) return 0;
  bool imports = false;
  PatchRelocations(module, module.tables.jump, module.tables.jump_bytes, work, imports);
  PatchRelocations(module, module.tables.other, module.tables.other_bytes, work, imports);
  if (imports) ++work.result.modules;
  return 0;
}

}  // namespace

bool PatchedModules::Add(uintptr_t base) {
  constexpr size_t kTries = 16, kPageBits = 12;
  for (size_t i = 0; i < kTries; ++i) {
    uintptr_t& slot = bases_[((base >> kPageBits) * 0x9e37'79b9 + i) % kSlots];
    if (slot == base) return false;
    if (slot != 0) continue;
    slot = base;
    return true;
  }
  return true;
}

GotPatchResult PatchGlobalOffsetTables(std::span<const GotHook> hooks,
                                       std::span<const std::string_view> except,
                                       std::string_view only, PatchedModules* done) {
  Work work{.hooks = hooks, .except = except, .only = only, .done = done};
  dl_iterate_phdr(&VisitModule, &work);
  return work.result;
}

GotPatchResult PatchModuleOf(const void* address, std::span<const GotHook> hooks) {
  Work work{.hooks = hooks, .address = address};
  dl_iterate_phdr(&VisitModule, &work);
  return work.result;
}

uint64_t ModuleLoadCount() {
  uint64_t adds = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uint64_t*>(data) = info->dlpi_adds;
        return 1;  // the first module tells
      },
      &adds);
  return adds;
}

}  // namespace ranktap::agent
