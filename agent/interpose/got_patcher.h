// Redirects calls that modules of this process make through their global offset tables: to a
// function of ours, whatever the module was linked with. Calls inside a library, and addresses that
// a program got from dlsym, are not seen.
// Runs on: the thread inside cuInit or `import torch`, the drain thread.  May not: run in a hook
// (takes the loader's lock, changes page protections).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ranktap::agent {

struct GotHook {
  std::string_view symbol;
  void* replacement;
  // Also in the module that defines it, where that calls itself through its table.
  bool also_at_home = false;
};

struct GotPatchResult {
  uint32_t modules = 0;   // that import at least one of the symbols
  uint32_t slots = 0;     // patched now; those already ours are not counted
  uint32_t failures = 0;  // slots whose page could not be made writable
};

// The modules that one set of hooks has been put into, so that each is looked at once. Beyond its
// room, and after a dlclose, they are looked at again.
class PatchedModules {
 public:
  // False: it was there before.
  bool Add(uintptr_t base);
  void Clear() { bases_.fill(0); }

  uint64_t unloads = 0;  // of the program's, up to the last patch

 private:
  static constexpr size_t kSlots = 2048;
  std::array<uintptr_t, kSlots> bases_{};  // 0: free
};

// Patches every module that is loaded now, but for the one we are in and those whose file name
// begins with one of `except`, or, where `only` names something, does not begin with that. Again
// after the program has loaded more: slots already ours are left, and modules in `done`.
GotPatchResult PatchGlobalOffsetTables(std::span<const GotHook> hooks,
                                       std::span<const std::string_view> except,
                                       std::string_view only = {}, PatchedModules* done = nullptr);

// The one module that `address` lies in.
GotPatchResult PatchModuleOf(const void* address, std::span<const GotHook> hooks);

// Changes whenever the program loads a module.
uint64_t ModuleLoadCount();

}  // namespace ranktap::agent
