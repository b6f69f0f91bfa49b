// Hooks in global offset tables.
// Runs on: see confinement.h.  May not: leave errno changed, return from a call in a child that
// shares our memory.
#include "agent/entry/confinement.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <span>
#include <utility>

#include "agent/core/log.h"
#include "agent/interpose/got_patcher.h"

namespace ranktap::agent {
namespace {

constinit ConfinementDuties g_duties{};
constinit std::mutex g_patching;
constinit uint64_t g_modules_seen = 0;

void Before(std::string_view why) {
  const int saved_errno = errno;
  g_duties.stop_for_good(why);
  errno = saved_errno;
}

// Filters that are no filters ask the kernel only whether it has them.
void BeforePrctl(long option, unsigned long what, unsigned long filter) {
  if (option == PR_SET_TSC && what == PR_TSC_SIGSEGV) Before("the program forbade reading the TSC");
  if (option != PR_SET_SECCOMP) return;
  if (what == SECCOMP_MODE_STRICT || filter != 0) Before("the program installed a seccomp filter");
}

void BeforeSeccomp(long operation, unsigned long filter) {
  const bool locks =
      operation == SECCOMP_SET_MODE_STRICT || (operation == SECCOMP_SET_MODE_FILTER && filter != 0);
  if (locks) Before("the program installed a seccomp filter");
}

template <typename Call>
int WithoutOurs(int flags, Call&& call) {
  if ((flags & CLONE_NEWUSER) == 0) return call();
  const int saved_errno = errno;
  const bool gone = g_duties.send_away(true);
  errno = saved_errno;
  const int result = call();
  const int call_errno = errno;
  if (gone) (void)g_duties.send_away(false);
  errno = call_errno;
  return result;
}

int HookPrctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  BeforePrctl(option, a, b);
  return prctl(option, a, b, c, d);
}

int HookUnshare(int flags) {
  return WithoutOurs(flags, [flags] { return unshare(flags); });
}

// Where only handlers tell of a fork, and this one runs none.
pid_t HookFork() {
  const pid_t child = _Fork();
  if (child == 0) g_duties.in_fork_child();
  return child;
}

struct Start {
  int (*function)(void*);
  void* argument;
};

int InClone(void* start) {
  const Start copy = *static_cast<Start*>(start);
  g_duties.in_fork_child();
  return copy.function(copy.argument);
}

int HookClone(int (*function)(void*), void* stack, int flags, void* argument, void* parent_tid,
              void* tls, void* child_tid) {
  if ((flags & CLONE_VM) != 0 || function == nullptr || stack == nullptr) {
    return clone(function, stack, flags, argument, parent_tid, tls, child_tid);
  }
  Start start{.function = function, .argument = argument};  // the child has a copy
  return clone(&InClone, stack, flags, &start, parent_tid, tls, child_tid);
}

}  // namespace

// Named in assembly.
extern "C" {
__attribute__((visibility("hidden"), used)) long (*ranktap_syscall)(long, ...) = &syscall;
__attribute__((visibility("hidden"), used)) bool ranktap_sees_forks = false;

__attribute__((visibility("hidden"), used)) long RanktapOnSyscall(long number, long a, long b,
                                                                  long c, long d, long e, long f) {
  switch (number) {
    case SYS_prctl:
      BeforePrctl(a, static_cast<unsigned long>(b), static_cast<unsigned long>(c));
      break;
    case SYS_seccomp:
      BeforeSeccomp(a, static_cast<unsigned long>(c));
      break;
    case SYS_unshare:
      return WithoutOurs(static_cast<int>(a),
                         [&] { return static_cast<int>(ranktap_syscall(number, a)); });
    default:
      break;
  }
  const long result = ranktap_syscall(number, a, b, c, d, e, f);
  bool forks = number == SYS_clone || number == SYS_clone3;
#if defined(SYS_fork)
  forks = forks || number == SYS_fork;
#endif
  if (result == 0 && forks) g_duties.in_fork_child();
  return result;
}
}

namespace {

// Every other number goes on by a jump, with the caller's registers and stack: children that share
// memory return through it twice. Not declared variadic: GCC then saves registers, naked or not,
// into its caller's frame.
#if defined(__x86_64__)
__attribute__((naked)) void HookSyscall() {
  asm(R"(
      cmp $157, %rdi
      je RanktapOnSyscall
      cmp $317, %rdi
      je RanktapOnSyscall
      cmp $272, %rdi
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
      jmp *ranktap_syscall(%rip)
  )");
}
static_assert(SYS_prctl == 157 && SYS_seccomp == 317 && SYS_unshare == 272 && SYS_fork == 57 &&
              SYS_clone == 56 && SYS_clone3 == 435 && CLONE_VM == 0x100);
#elif defined(__aarch64__)
// GCC has no naked functions there.
asm(R"(
    .text
    .type RanktapHookSyscall, %function
    .hidden RanktapHookSyscall
    .globl RanktapHookSyscall
RanktapHookSyscall:
    hint #34
    cmp x0, #167
    b.eq 3f
    cmp x0, #277
    b.eq 3f
    cmp x0, #97
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
              SYS_clone3 == 435 && CLONE_VM == 0x100);
extern "C" void RanktapHookSyscall();
constexpr auto HookSyscall = &RanktapHookSyscall;
#endif

template <typename Function>
void* Hook(Function* function) {
  return reinterpret_cast<void*>(function);
}

void Patch() {
  // The last two only where they are needed.
  const std::array<GotHook, 5> hooks = {{{"prctl", Hook(&HookPrctl)},
                                         {"syscall", Hook(+HookSyscall)},
                                         {"unshare", Hook(&HookUnshare)},
                                         {"_Fork", Hook(&HookFork)},
                                         {"clone", Hook(&HookClone)}}};
  const size_t wanted = ranktap_sees_forks ? hooks.size() : 3;
  // Inside glibc and its loader these are calls of its own.
  constexpr std::array<std::string_view, 3> kExcept = {"libc.so", "ld-linux", "libpthread"};
  const auto result = PatchGlobalOffsetTables(std::span(hooks).first(wanted), kExcept);
  if (result.failures != 0) Log("some modules' calls of prctl and syscall could not be redirected");
}

}  // namespace

void InstallConfinementHooks(const ConfinementDuties& duties) {
  const std::lock_guard lock(g_patching);
  g_duties = duties;
  ranktap_sees_forks = duties.in_fork_child != nullptr;
  const uint64_t modules = ModuleLoadCount();
  if (std::exchange(g_modules_seen, modules) != modules) Patch();
}

}  // namespace ranktap::agent
