// Assembly for the two processors.
// Runs on: see dlsym_hook.h.  May not: allocate.
#include "agent/interpose/dlsym_hook.h"

#include <dlfcn.h>

#include <array>
#include <atomic>

namespace ranktap::agent {
namespace {

constinit std::array<std::atomic<LookupAnswer>, 2> g_answers{};

}  // namespace

// Named in assembly.
extern "C" {
__attribute__((visibility("hidden"), used)) void* (*ranktap_dlsym)(void*, const char*) = &dlsym;

__attribute__((visibility("hidden"), used)) void* RanktapOnDlsym(void* handle, const char* name) {
  if (name == nullptr) return nullptr;
  for (const auto& answer : g_answers) {
    const LookupAnswer asked = answer.load(std::memory_order_acquire);
    void* const found = asked == nullptr ? nullptr : asked(handle, name);
    if (found != nullptr) return found;
  }
  return nullptr;
}
}

namespace {

#if defined(__x86_64__)
__attribute__((naked)) void HookDlsym() {
  asm(R"(
      push %rdi
      push %rsi
      sub $8, %rsp
      call RanktapOnDlsym
      add $8, %rsp
      pop %rsi
      pop %rdi
      test %rax, %rax
      jne 1f
      jmp *ranktap_dlsym(%rip)
    1:
      ret
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
    stp x29, x30, [sp, #-32]!
    stp x0, x1, [sp, #16]
    bl RanktapOnDlsym
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    cbnz x16, 1f
    adrp x16, ranktap_dlsym
    ldr x16, [x16, :lo12:ranktap_dlsym]
    br x16
1:
    mov x0, x16
    ret
    .size RanktapHookDlsym, . - RanktapHookDlsym
)");
extern "C" void RanktapHookDlsym();
constexpr auto HookDlsym = &RanktapHookDlsym;
#endif

}  // namespace

void AnswerLookups(LookupAnswer answer) {
  for (auto& place : g_answers) {
    LookupAnswer before = nullptr;
    if (place.compare_exchange_strong(before, answer) || before == answer) return;
  }
}

void* DlsymHook() { return reinterpret_cast<void*>(+HookDlsym); }

}  // namespace ranktap::agent
