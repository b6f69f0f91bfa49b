// Redirected CUPTI calls.
// Runs on: see cupti_redirect.h; the dlsym hook on the program's threads.  May not: touch what
// dlsym returns for any name but CUPTI's.
#include "agent/sources/cupti/cupti_redirect.h"

#include <dlfcn.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/log.h"
#include "agent/interpose/dlsym_hook.h"

namespace ranktap::agent::cupti {
namespace {

std::span<const GotHook> g_hooks;
// By their places in g_hooks: the functions of the library that we use. Never freed.
std::vector<void*>* g_hooked = nullptr;
uint64_t g_modules_seen = 0;

// Another copy of CUPTI keeps its own.
void* FindCupti(void* handle, const char* name) {
  if (!std::string_view(name).starts_with("cupti")) return nullptr;
  void* const found = dlsym(handle, name);
  for (size_t i = 0; found != nullptr && i < g_hooks.size(); ++i) {
    if ((*g_hooked)[i] == found) return g_hooks[i].replacement;
  }
  return nullptr;
}

void Patch() {
  constexpr std::array<std::string_view, 1> kExcept = {"libcupti"};
  const std::array<GotHook, 1> lookups = {{{"dlsym", DlsymHook()}}};
  const GotPatchResult result = PatchGlobalOffsetTables(g_hooks, kExcept);
  const GotPatchResult found = PatchGlobalOffsetTables(lookups, kExcept);
  if (result.failures + found.failures != 0) {
    Log("some modules' CUPTI calls could not be redirected");
  }
}

}  // namespace

void RedirectCalls(void* library, std::span<const GotHook> hooks) {
  auto* hooked = new std::vector<void*>;
  for (const GotHook& hook : hooks) {
    hooked->push_back(dlsym(library, std::string(hook.symbol).c_str()));
  }
  g_hooked = hooked;
  g_hooks = hooks;
  AnswerLookups(&FindCupti);
  g_modules_seen = ModuleLoadCount();
  Patch();
}

void RedirectNewModules() {
  if (g_hooked == nullptr) return;
  const uint64_t modules = ModuleLoadCount();
  if (modules == g_modules_seen) return;
  g_modules_seen = modules;
  Patch();
}

}  // namespace ranktap::agent::cupti
