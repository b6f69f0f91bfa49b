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

namespace ranktap::agent::cupti {
namespace {

std::span<const GotHook> g_hooks;
// By their places in g_hooks: the functions of the library that we use. Never freed.
std::vector<void*>* g_hooked = nullptr;
uint64_t g_modules_seen = 0;

}  // namespace

// Named in assembly.
extern "C" {
__attribute__((visibility("hidden"), used)) void* (*ranktap_dlsym)(void*, const char*) = &dlsym;

// What dlsym finds, but for the functions above. Another copy of CUPTI keeps its own.
__attribute__((visibility("hidden"), used)) void* RanktapFindCupti(void* handle, const char* name) {
  void* const found = ranktap_dlsym(handle, name);
  for (size_t i = 0; found != nullptr && i < g_hooks.size(); ++i) {
    if ((*g_hooked)[i] == found) return g_hooks[i].replacement;
  }
  return found;
}
}

namespace {

// The program's calls of dlsym. All names that do not begin with "cupti" go on to it by a jump,
// with their return address: by that dlsym decides what RTLD_NEXT is.
#if defined(__x86_64__)
__attribute__((naked)) void* HookDlsym(void*, const char*) {
  asm(R"(
      test %rsi, %rsi
      jz 1f
      cmpb $'c', (%rsi)
      jne 1f
      cmpb $'u', 1(%rsi)
      jne 1f
      cmpb $'p', 2(%rsi)
      jne 1f
      cmpb $'t', 3(%rsi)
      jne 1f
      cmpb $'i', 4(%rsi)
      je RanktapFindCupti
    1:
      jmp *ranktap_dlsym(%rip)
  )");
}
#elif defined(__aarch64__)
// GCC has no naked functions there.
asm(R"(
    .text
    .type RanktapHookDlsym, %function
    .hidden RanktapHookDlsym
    .globl RanktapHookDlsym
RanktapHookDlsym:
    hint #34
    cbz x1, 1f
    ldrb w16, [x1]
    cmp w16, #'c'
    b.ne 1f
    ldrb w16, [x1, #1]
    cmp w16, #'u'
    b.ne 1f
    ldrb w16, [x1, #2]
    cmp w16, #'p'
    b.ne 1f
    ldrb w16, [x1, #3]
    cmp w16, #'t'
    b.ne 1f
    ldrb w16, [x1, #4]
    cmp w16, #'i'
    b.ne 1f
    b RanktapFindCupti
1:
    adrp x16, ranktap_dlsym
    ldr x16, [x16, :lo12:ranktap_dlsym]
    br x16
    .size RanktapHookDlsym, . - RanktapHookDlsym
)");
extern "C" void* RanktapHookDlsym(void*, const char*);
constexpr auto HookDlsym = &RanktapHookDlsym;
#endif

void Patch() {
  constexpr std::array<std::string_view, 1> kExcept = {"libcupti"};
  const std::array<GotHook, 1> lookups = {{{"dlsym", reinterpret_cast<void*>(+HookDlsym)}}};
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
