// Assembly for the two processors.
// Runs on: see syscall_hook.h.  May not: see there.
#include "agent/entry/syscall_hook.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
__attribute__((used)) long (*ranktap_syscall)(long, ...) = &syscall;
__attribute__((used)) bool ranktap_sees_forks = false;
}

namespace ranktap::agent {
namespace {

// Numbers that are looked at: those that change ids and rights lie together. Not declared variadic:
// GCC then saves registers, naked or not, into its caller's frame.
#if defined(__x86_64__)
__attribute__((naked)) void HookSyscall() {
  asm(R"(
      lea -105(%rdi), %rax
      cmp $21, %rax
      jbe RanktapOnSyscall
      cmp $157, %rdi
      je RanktapOnSyscall
      cmp $317, %rdi
      je RanktapOnSyscall
      cmp $272, %rdi
      je RanktapOnSyscall
      cmp $308, %rdi
      je RanktapOnSyscall
      cmp $446, %rdi
      je RanktapOnSyscall
      cmpb $0, ranktap_sees_forks(%rip)
      je 1f
      cmp $57, %rdi
      je RanktapOnSyscall
      cmp $56, %rdi
      jne 2f
      test $0x100, %rsi
      jz RanktapOnSyscall
      jmp 1f
    2:
      cmp $435, %rdi
      jne 1f
      test %rsi, %rsi
      jz 1f
      testl $0x100, (%rsi)
      jz RanktapOnSyscall
    1:
      xor %eax, %eax
      jmp *ranktap_syscall(%rip)
  )");
}
static_assert(SYS_prctl == 157 && SYS_seccomp == 317 && SYS_unshare == 272 && SYS_fork == 57 &&
              SYS_clone == 56 && SYS_clone3 == 435 && CLONE_VM == 0x100 && SYS_setns == 308 &&
              SYS_setuid == 105 && SYS_setfsgid == 123 && SYS_capset == 105 + 21);
#elif defined(__aarch64__)
// GCC has no naked functions there.
asm(R"(
    .text
    .type RanktapHookSyscall, %function
    .hidden RanktapHookSyscall
    .globl RanktapHookSyscall
RanktapHookSyscall:
    hint #34
    cmp x0, #91
    b.eq 3f
    sub x16, x0, #143
    cmp x16, #16
    b.ls 3f
    cmp x0, #167
    b.eq 3f
    cmp x0, #277
    b.eq 3f
    cmp x0, #97
    b.eq 3f
    cmp x0, #268
    b.eq 3f
    cmp x0, #446
    b.eq 3f
    adrp x16, ranktap_sees_forks
    ldrb w16, [x16, :lo12:ranktap_sees_forks]
    cbz w16, 1f
    cmp x0, #220
    b.ne 2f
    tbz x1, #8, 3f
    b 1f
2:
    cmp x0, #435
    b.ne 1f
    cbz x1, 1f
    ldr w16, [x1]
    tbz w16, #8, 3f
1:
    adrp x16, ranktap_syscall
    ldr x16, [x16, :lo12:ranktap_syscall]
    br x16
3:
    b RanktapOnSyscall
    .size RanktapHookSyscall, . - RanktapHookSyscall
)");
static_assert(SYS_prctl == 167 && SYS_seccomp == 277 && SYS_unshare == 97 && SYS_clone == 220 &&
              SYS_clone3 == 435 && CLONE_VM == 0x100 && SYS_capset == 91 && SYS_setns == 268 &&
              SYS_setregid == 143 && SYS_setgroups == 143 + 16);
extern "C" void RanktapHookSyscall();
constexpr auto HookSyscall = &RanktapHookSyscall;
#endif

}  // namespace

void* SyscallHook() { return reinterpret_cast<void*>(+HookSyscall); }

}  // namespace ranktap::agent
