// Hooks in global offset tables.
// Runs on: see confinement.h.  May not: leave errno changed, return from a call in a child that
// shares our memory.
#include "agent/entry/confinement.h"

#include <dlfcn.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <span>
#include <utility>

#include "agent/core/capture_state.h"
#include "agent/core/log.h"
#include "agent/entry/syscall_hook.h"
#include "agent/interpose/dlsym_hook.h"
#include "agent/interpose/got_patcher.h"

// No header of libc's declares it.
extern "C" int capset(void* header, const void* data) noexcept;

namespace ranktap::agent {
namespace {

constinit ConfinementDuties g_duties{};
constinit std::mutex g_patching;
constinit uint64_t g_modules_seen = 0;
constinit PatchedModules g_patched{};

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
auto WithoutOurThreads(Pauses pauses, Call&& call) {
  const int saved_errno = errno;
  const bool paused = g_duties.pause(pauses);
  errno = saved_errno;
  const auto result = call();
  const int call_errno = errno;
  if (paused) g_duties.resume();
  errno = call_errno;
  return result;
}

bool ChangesRights(long option, unsigned long what) {
  return option == PR_SET_KEEPCAPS || option == PR_SET_SECUREBITS || option == PR_CAPBSET_DROP ||
         option == PR_SET_NO_NEW_PRIVS ||
         (option == PR_CAP_AMBIENT && what != PR_CAP_AMBIENT_IS_SET);
}

int HookPrctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  const auto call = [=] { return prctl(option, a, b, c, d); };
  BeforePrctl(option, a, b);
  return ChangesRights(option, a) ? WithoutOurThreads(Pauses::kAlways, call) : call();
}

bool UnsharesAsOneThread(int flags) {
  return (flags & (CLONE_NEWUSER | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)) != 0;
}

int HookUnshare(int flags) {
  const auto call = [=] { return unshare(flags); };
  return UnsharesAsOneThread(flags) ? WithoutOurThreads(Pauses::kIfAlone, call) : call();
}

// 0: whatever the descriptor is of.
bool EntersAsOneThread(int kind) {
  constexpr int kNewTime = 0x80;  // CLONE_NEWTIME
  return kind == 0 || (kind & (CLONE_NEWUSER | CLONE_NEWNS | kNewTime)) != 0;
}

int HookSetns(int descriptor, int kind) {
  const auto call = [=] { return setns(descriptor, kind); };
  return EntersAsOneThread(kind) ? WithoutOurThreads(Pauses::kIfAlone, call) : call();
}

template <Pauses kPauses, auto kCall, typename... Arguments>
int HookRights(Arguments... arguments) {
  return WithoutOurThreads(kPauses, [=] { return kCall(arguments...); });
}

// Only handlers tell of a fork, and this one runs none.
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

struct LibcHook {
  GotHook hook;
  void* original;
};

template <typename Replacement, typename Original>
LibcHook Of(std::string_view symbol, Replacement* replacement, Original* original) {
  return {.hook = {.symbol = symbol, .replacement = reinterpret_cast<void*>(replacement)},
          .original = reinterpret_cast<void*>(original)};
}

template <Pauses kPauses, auto kCall, typename... Arguments>
LibcHook RightsOf(std::string_view symbol) {
  return Of(symbol, &HookRights<kPauses, kCall, Arguments...>, kCall);
}

std::span<const LibcHook> Hooks() {
  using enum Pauses;
  static const std::array kHooks = {
      Of("prctl", &HookPrctl, &prctl),
      Of("syscall", static_cast<char*>(SyscallHook()), ranktap_syscall),
      Of("dlsym", static_cast<char*>(DlsymHook()), &dlsym),
      Of("unshare", &HookUnshare, &unshare),
      Of("setns", &HookSetns, &setns),
      RightsOf<kAlways, &capset, void*, const void*>("capset"),
      RightsOf<kAlways, &setuid, uid_t>("setuid"),
      RightsOf<kAlways, &setgid, gid_t>("setgid"),
      RightsOf<kAlways, &seteuid, uid_t>("seteuid"),
      RightsOf<kAlways, &setegid, gid_t>("setegid"),
      RightsOf<kAlways, &setreuid, uid_t, uid_t>("setreuid"),
      RightsOf<kAlways, &setregid, gid_t, gid_t>("setregid"),
      RightsOf<kAlways, &setresuid, uid_t, uid_t, uid_t>("setresuid"),
      RightsOf<kAlways, &setresgid, gid_t, gid_t, gid_t>("setresgid"),
      RightsOf<kAlways, &setgroups, size_t, const gid_t*>("setgroups"),
      RightsOf<kAlways, &initgroups, const char*, gid_t>("initgroups"),
      // In libc too these change one thread; servers of files call them for each request.
      RightsOf<kIfAlone, &setfsuid, uid_t>("setfsuid"),
      RightsOf<kIfAlone, &setfsgid, gid_t>("setfsgid"),
      // The last two only where they are needed.
      Of("_Fork", &HookFork, &_Fork),
      Of("clone", &HookClone, &clone),
  };
  return std::span(kHooks).first(kHooks.size() - (ranktap_sees_forks ? 0 : 2));
}

void Patch(bool alone) {
  constexpr size_t kMost = 24;
  std::array<GotHook, kMost> hooks;
  size_t wanted = 0;
  for (const LibcHook& hook : Hooks()) hooks[wanted++] = hook.hook;
  // Inside glibc and its loader these are calls of its own.
  constexpr std::array<std::string_view, 3> kExcept = {"libc.so", "ld-linux", "libpthread"};
  // A module that another thread is loading may be half relocated: it is looked at again.
  const auto result = PatchGlobalOffsetTables(std::span(hooks).first(wanted), kExcept, {},
                                              alone ? &g_patched : nullptr);
  if (result.failures != 0) Log("some modules' calls of prctl and syscall could not be redirected");
}

// A library that came by dlopen is used through dlsym. Not beside other threads: one of them may be
// loading, and the loader still write where we would take the right to write away.
void PatchWhatIsNew() {
  const uint64_t modules = ModuleLoadCount();
  const std::unique_lock lock(g_patching, std::try_to_lock);
  if (!lock.owns_lock() || std::exchange(g_modules_seen, modules) == modules) return;
  if (g_duties.is_alone()) Patch(/*alone=*/true);
}

long OnRawCall(long number, Pauses pauses, long a, long b, long c) {
  return WithoutOurThreads(pauses, [=] { return ranktap_syscall(number, a, b, c); });
}

void* FindHooked(void* handle, const char* name) {
  if (!Capturing(kCaptureAlive)) return nullptr;
  const int saved_errno = errno;
  PatchWhatIsNew();
  errno = saved_errno;
  if (handle == RTLD_NEXT) return nullptr;
  for (const LibcHook& hook : Hooks()) {
    if (hook.hook.symbol != name) continue;
    return dlsym(handle, name) == hook.original ? hook.hook.replacement : nullptr;
  }
  return nullptr;
}

}  // namespace

extern "C" long RanktapOnSyscall(long number, long a, long b, long c, long d, long e, long f) {
  constexpr long kLandlockRestrictSelf = 446;
  switch (number) {
    case SYS_prctl:
      BeforePrctl(a, static_cast<unsigned long>(b), static_cast<unsigned long>(c));
      if (!ChangesRights(a, static_cast<unsigned long>(b))) break;
      return WithoutOurThreads(Pauses::kAlways,
                               [=] { return ranktap_syscall(SYS_prctl, a, b, c, d, e); });
    case SYS_seccomp:
      BeforeSeccomp(a, static_cast<unsigned long>(c));
      break;
    case SYS_capset:
    case kLandlockRestrictSelf:
      return OnRawCall(number, Pauses::kAlways, a, b, c);
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setgroups:
    case SYS_setfsuid:
    case SYS_setfsgid:
      return OnRawCall(number, Pauses::kIfAlone, a, b, c);
    case SYS_unshare:
      if (!UnsharesAsOneThread(static_cast<int>(a))) break;
      return OnRawCall(number, Pauses::kIfAlone, a, b, c);
    case SYS_setns:
      if (!EntersAsOneThread(static_cast<int>(b))) break;
      return OnRawCall(number, Pauses::kIfAlone, a, b, c);
    default:
      break;
  }
  const long result = ranktap_syscall(number, a, b, c, d, e, f);
  bool forks = number == SYS_clone || number == SYS_clone3;
#if defined(SYS_fork)
  forks = forks || number == SYS_fork;
#endif
  if (result == 0 && forks && ranktap_sees_forks) g_duties.in_fork_child();
  return result;
}

void InstallConfinementHooks(const ConfinementDuties& duties) {
  const std::lock_guard lock(g_patching);
  g_duties = duties;
  ranktap_sees_forks = duties.in_fork_child != nullptr;
  AnswerLookups(&FindHooked);
  const uint64_t modules = ModuleLoadCount();
  if (std::exchange(g_modules_seen, modules) != modules) Patch(duties.is_alone());
}

}  // namespace ranktap::agent
