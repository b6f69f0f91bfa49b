// An append-only list, scanned from its end: a search is part of learning a frame, which costs
// microseconds anyway. Runs on: see module_table.h.  May not: reuse an entry.
#include "agent/stacks/module_table.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <string>
#include <string_view>

#include "agent/core/announcements.h"

namespace ranktap::agent::stacks {
namespace {

struct Entry {
  std::atomic<bool> live;
  bool seen;  // by the refresh that runs
  Module module;
};

// Set by Create, before the first walk.
constinit Entry* g_entries = nullptr;
constinit std::atomic<uint32_t> g_count{0};
constinit std::atomic<uintptr_t> g_own_low{0};
constinit std::atomic<uintptr_t> g_own_high{0};

struct Visit {
  Arena& arena;
  uint32_t most;
  uint64_t* changes;  // of the last refresh
  bool unchanged = false;
  std::string announced;
};

uint64_t BytesAt(uintptr_t address) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, reinterpret_cast<const void*>(address), sizeof(bytes));
  return bytes;
}

std::string PathOf(const dl_phdr_info& info) {
  if (info.dlpi_name != nullptr && info.dlpi_name[0] != '\0') return info.dlpi_name;
  char path[PATH_MAX];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path));
  return bytes > 0 ? std::string(path, static_cast<size_t>(bytes)) : std::string();
}

// The descriptor of the note NT_GNU_BUILD_ID.
std::string_view BuildIdIn(uintptr_t notes, size_t bytes) {
  const auto padded = [](size_t size) { return (size + 3) & ~size_t{3}; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(notes);
    const size_t size = sizeof(*note) + padded(note->n_namesz) + padded(note->n_descsz);
    if (size > bytes) return {};
    const char* name = reinterpret_cast<const char*>(note + 1);
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof(ELF_NOTE_GNU) &&
        std::memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
      return {name + padded(note->n_namesz), note->n_descsz};
    }
    notes += size;
    bytes -= size;
  }
  return {};
}

// False: nothing that could be on a stack.
bool Describe(const dl_phdr_info& info, Module& module, std::string_view& build_id) {
  module.bias = info.dlpi_addr;
  module.low = UINTPTR_MAX;
  bool executable = false;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    const uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) {
      module.low = std::min(module.low, begin);
      module.high = std::max(module.high, begin + header.p_memsz);
      executable |= (header.p_flags & PF_X) != 0;
    } else if (header.p_type == PT_GNU_EH_FRAME) {
      module.eh_frame_header = begin;
      module.fingerprint = BytesAt(begin);
    } else if (header.p_type == PT_NOTE && build_id.empty()) {
      build_id = BuildIdIn(begin, header.p_memsz);
    }
    const bool wanted =
        header.p_type == PT_LOAD || header.p_type == PT_GNU_EH_FRAME || header.p_type == PT_DYNAMIC;
    if (wanted && module.header_count < std::size(module.headers)) {
      module.headers[module.header_count++] = header;
    }
  }
  return executable;
}

// Version 1, a search table of 4-byte pairs: what every linker writes. libunwind would abort on
// some others.
bool HasSearchTable(const Module& module) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&module.fingerprint);
  constexpr uint8_t kVersion = 1, kOmitted = 0xff, kSortedTable = 0x3b;
  return module.eh_frame_header != 0 && bytes[0] == kVersion && bytes[1] != kOmitted &&
         bytes[2] != kOmitted && bytes[3] == kSortedTable;
}

void Add(const dl_phdr_info& info, Visit& visit) {
  const uint32_t index = g_count.load(std::memory_order_relaxed);
  Module module;
  std::string_view build_id;
  if (index >= visit.most || !Describe(info, module, build_id)) return;
  if (!HasSearchTable(module)) module.eh_frame_header = 0;
  const std::string path = PathOf(info);
  const proto::ModuleEntry head{.start = module.low,
                                .bytes = module.high - module.low,
                                .bias = module.bias,
                                .build_id_bytes = static_cast<uint32_t>(build_id.size()),
                                .order = index};
  std::string content(reinterpret_cast<const char*>(&head), sizeof(head));
  content.append(build_id).append(path);
  const proto::ArenaRef ref =
      visit.arena.Intern(proto::EntryKind::kModule, std::as_bytes(std::span(content)));
  if (const proto::ArenaEntry* entry = visit.arena.Find(ref)) AppendEntry(*entry, visit.announced);
  const auto own = reinterpret_cast<uintptr_t>(&g_entries);
  const bool is_agent =
      path.find("/libranktap_agent.so") != std::string::npos;  // in a test, the program
  if (is_agent && own >= module.low && own < module.high) {
    g_own_low.store(module.low);
    g_own_high.store(module.high);
  }
  Entry& entry = g_entries[index];
  entry.module = module;
  entry.seen = true;
  entry.live.store(true, std::memory_order_relaxed);
  g_count.store(index + 1, std::memory_order_release);
}

int VisitModule(dl_phdr_info* info, size_t, void* data) {
  Visit& visit = *static_cast<Visit*>(data);
  const uint64_t changes = info->dlpi_adds + info->dlpi_subs;
  if (changes == *visit.changes) {
    visit.unchanged = true;
    return 1;
  }
  for (uint32_t i = 0; i < g_count.load(std::memory_order_relaxed); ++i) {
    Entry& entry = g_entries[i];
    if (!entry.live.load(std::memory_order_relaxed) || entry.seen ||
        entry.module.bias != info->dlpi_addr) {
      continue;
    }
    Module now;
    std::string_view build_id;
    if (!Describe(*info, now, build_id) || now.low != entry.module.low ||
        now.high != entry.module.high) {
      continue;
    }
    entry.seen = true;
    return 0;
  }
  Add(*info, visit);
  return 0;
}

}  // namespace

bool ModuleTable::Create() {
  void* memory = mmap(nullptr, sizeof(Entry) * kMostModules, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  g_entries = static_cast<Entry*>(memory);
  return true;
}

bool ModuleTable::Refresh(Arena& arena) {
  static constinit uint64_t last_changes = 0;
  uint64_t changes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uint64_t*>(data) = info->dlpi_adds + info->dlpi_subs;
        return 1;
      },
      &changes);
  if (changes == last_changes) return false;
  for (uint32_t i = 0; i < size(); ++i) g_entries[i].seen = false;
  Visit visit{.arena = arena, .most = kMostModules, .changes = &last_changes, .announced = {}};
  dl_iterate_phdr(&VisitModule, &visit);
  last_changes = changes;
  bool gone = false;
  for (uint32_t i = 0; i < size(); ++i) {
    if (g_entries[i].seen || !g_entries[i].live.load(std::memory_order_relaxed)) continue;
    g_entries[i].live.store(false, std::memory_order_release);
    gone = true;
  }
  if (!visit.announced.empty()) {
    Announce(proto::FrameType::kDictionary, true, std::move(visit.announced));
  }
  return gone;
}

const Module* ModuleTable::Find(uintptr_t address) {
  for (uint32_t i = g_count.load(std::memory_order_acquire); i-- > 0;) {
    const Entry& entry = g_entries[i];
    if (address >= entry.module.low && address < entry.module.high &&
        entry.live.load(std::memory_order_acquire)) {
      return &entry.module;
    }
  }
  return nullptr;
}

bool ModuleTable::IsMapped(const Module& module) {
  uint64_t found = 0;
  const iovec here{.iov_base = &found, .iov_len = sizeof(found)};
  const iovec there{.iov_base = reinterpret_cast<void*>(module.eh_frame_header),
                    .iov_len = sizeof(found)};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof(found) &&
         found == module.fingerprint;
}

bool ModuleTable::IsOwn(uintptr_t address) {
  return address >= g_own_low.load(std::memory_order_relaxed) &&
         address < g_own_high.load(std::memory_order_relaxed);
}

uint32_t ModuleTable::size() { return g_count.load(std::memory_order_acquire); }

}  // namespace ranktap::agent::stacks

// libunwind's dl_iterate_phdr (scripts/setup). Its one caller passes what begins with the address
// it looks for; only that address's module is shown to it, and only while its table is mapped.
extern "C" int ranktap_iterate_modules(int (*visit)(dl_phdr_info*, size_t, void*), void* data);
extern "C" int ranktap_iterate_modules(int (*visit)(dl_phdr_info*, size_t, void*), void* data) {
  using ranktap::agent::stacks::ModuleTable;
  const auto* module = ModuleTable::Find(*static_cast<const uintptr_t*>(data));
  if (module == nullptr || module->eh_frame_header == 0 || !ModuleTable::IsMapped(*module)) {
    return 0;
  }
  dl_phdr_info info{};
  info.dlpi_addr = module->bias;
  info.dlpi_name = "";
  info.dlpi_phdr = module->headers;
  info.dlpi_phnum = static_cast<ElfW(Half)>(module->header_count);
  return visit(&info, sizeof(info), data);
}
