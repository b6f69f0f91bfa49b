#include "collector/launch/tried_calls.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <new>

namespace ranktap::collector {
namespace {

struct Call {
  const char* name;
  long number;
  long first = -1, second = -1;  // what filters look at
};

#define RANKTAP_CALL(name, ...) \
  Call { #name, SYS_##name __VA_OPT__(, ) __VA_ARGS__ }
// All that a traced program makes and a bare one may not (tests/python/test_system_calls.py), but
// those that end a thread or wait.
constexpr auto kCalls = std::to_array<Call>({
    RANKTAP_CALL(accept4),
    RANKTAP_CALL(bind),
    RANKTAP_CALL(clock_gettime),
    RANKTAP_CALL(clock_nanosleep),
    RANKTAP_CALL(clone3),
    RANKTAP_CALL(connect),
    RANKTAP_CALL(epoll_create1),
    RANKTAP_CALL(epoll_ctl),
    RANKTAP_CALL(eventfd2),
    RANKTAP_CALL(faccessat),
    RANKTAP_CALL(faccessat2),
    RANKTAP_CALL(fallocate),
    RANKTAP_CALL(fchmod),
    RANKTAP_CALL(fchown),
    RANKTAP_CALL(fcntl),
    RANKTAP_CALL(flock),
    RANKTAP_CALL(fstat),
    RANKTAP_CALL(fstatfs),
    RANKTAP_CALL(ftruncate),
    RANKTAP_CALL(futex),
    RANKTAP_CALL(getcwd),
    RANKTAP_CALL(getdents64),
    RANKTAP_CALL(geteuid),
    RANKTAP_CALL(getpid),
    RANKTAP_CALL(getppid),
    RANKTAP_CALL(getrandom),
    RANKTAP_CALL(getsockopt),
    RANKTAP_CALL(gettid),
    RANKTAP_CALL(getuid),
    RANKTAP_CALL(getxattr),
    RANKTAP_CALL(ioctl),
    RANKTAP_CALL(linkat),
    RANKTAP_CALL(listen),
    RANKTAP_CALL(lseek),
    RANKTAP_CALL(madvise),
    RANKTAP_CALL(memfd_create),
    RANKTAP_CALL(mkdirat),
    RANKTAP_CALL(mremap),
    RANKTAP_CALL(pidfd_open),
    RANKTAP_CALL(pipe2),
    RANKTAP_CALL(ppoll),
    RANKTAP_CALL(prctl, PR_SET_NAME),
    RANKTAP_CALL(pread64),
    RANKTAP_CALL(prlimit64),
    RANKTAP_CALL(process_vm_readv),
    RANKTAP_CALL(pwrite64),
    RANKTAP_CALL(readlinkat),
    RANKTAP_CALL(recvfrom),
    RANKTAP_CALL(recvmsg),
    RANKTAP_CALL(renameat),
    RANKTAP_CALL(renameat2),
    RANKTAP_CALL(rt_sigaction),
    RANKTAP_CALL(rt_sigprocmask),
    RANKTAP_CALL(sched_getaffinity),
    RANKTAP_CALL(sched_yield),
    RANKTAP_CALL(sendmsg),
    RANKTAP_CALL(sendto),
    RANKTAP_CALL(setpriority),
    RANKTAP_CALL(setsockopt),
    RANKTAP_CALL(shutdown),
    RANKTAP_CALL(sigaltstack),
    RANKTAP_CALL(signalfd4),
    RANKTAP_CALL(socket, AF_UNIX, SOCK_STREAM),
    RANKTAP_CALL(statfs),
    RANKTAP_CALL(sysinfo),
    RANKTAP_CALL(tgkill),
    RANKTAP_CALL(timer_create),
    RANKTAP_CALL(timer_delete),
    RANKTAP_CALL(timer_settime),
    RANKTAP_CALL(uname),
    RANKTAP_CALL(unlinkat),
    RANKTAP_CALL(writev),
#ifdef SYS_unlink  // not for the younger processors
    RANKTAP_CALL(chmod),
    RANKTAP_CALL(epoll_wait),
    RANKTAP_CALL(lstat),
    RANKTAP_CALL(mkdir),
    RANKTAP_CALL(poll),
    RANKTAP_CALL(readlink),
    RANKTAP_CALL(rmdir),
    RANKTAP_CALL(stat),
    RANKTAP_CALL(unlink),
#endif
});
#undef RANKTAP_CALL

// In the child. `at`: the call that is being made.
[[noreturn]] void MakeEach(std::atomic<size_t>* at) {
  (void)::prctl(PR_SET_DUMPABLE, 0);  // its death leaves no core file
  for (; *at < kCalls.size(); ++*at) {
    const Call& call = kCalls[*at];
    (void)::syscall(call.number, call.first, call.second, -1L, -1L, -1L, -1L);
  }
  ::_exit(0);
}

}  // namespace

std::string WhyOurCallsEndAProcess() {
  void* const shared = ::mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {};
  auto* const at = new (shared) std::atomic<size_t>(0);
  const pid_t child = ::fork();
  if (child == 0) MakeEach(at);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string why;
  if (child > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS && *at < kCalls.size()) {
    why = fmt::format("a seccomp filter ends a process that calls {}", kCalls[*at].name);
  }
  (void)::munmap(shared, sizeof(*at));
  return why;
}

}  // namespace ranktap::collector
