// Redirects calls that modules of this process make through their global offset tables: to a
// function of ours, whatever the module was linked with. Calls inside a library, and addresses that
// a program got from dlsym, are not seen.
// Runs on: the thread inside cuInit or `import torch`, the drain thread.  May not: run in a hook
// (takes the loader's lock, changes page protections).
#pragma once

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

// Patches every module that is loaded now, but for the one we are in and those whose file name
// begins with one of `except`, or, where `only` names something, does not begin with that. Again
// after the program has loaded more: slots already ours are left.
GotPatchResult PatchGlobalOffsetTables(std::span<const GotHook> hooks,
                                       std::span<const std::string_view> except,
                                       std::string_view only = {});

// Changes whenever the program loads a module.
uint64_t ModuleLoadCount();

}  // namespace ranktap::agent
