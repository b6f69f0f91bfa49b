// The modules (executable, shared objects, vdso) of this process: where each lies and where its
// unwind table is. Replaces dl_iterate_phdr inside libunwind, so that a hook never takes the
// loader's lock.
// Runs on: Create and Refresh on the arming thread, later the drain thread; the rest on any thread.
// May not: on user threads allocate, lock or ask the loader.
#pragma once

#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstdint>

#include "agent/core/arena.h"

namespace ranktap::agent::stacks {

struct Module {
  uintptr_t low = 0, high = 0;  // [low, high)
  uintptr_t bias = 0;           // what to add to an address in the file
  uintptr_t eh_frame_header = 0;
  uint64_t fingerprint = 0;  // the first eight bytes there: another module may have come since
  uint32_t header_count = 0;
  ElfW(Phdr) headers[12] = {};  // those libunwind looks at
};

class ModuleTable {
 public:
  // False: no memory.
  [[nodiscard]] static bool Create();

  // Takes in what the program has loaded and unloaded since. Announces new modules. True when a
  // module is gone: rules learnt from it must be forgotten.
  static bool Refresh(Arena& arena);

  // nullptr: not known (yet).
  static const Module* Find(uintptr_t address);
  // Whether the module's unwind table is still there. One system call.
  static bool IsMapped(const Module& module);

  // Whether it lies in our own library, whose frames do not belong to a program's stack.
  static bool IsOwn(uintptr_t address);

  static uint32_t size();

 private:
  static constexpr uint32_t kMostModules = 4096;
};

}  // namespace ranktap::agent::stacks
