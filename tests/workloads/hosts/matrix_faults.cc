// What happens to matrix.cc. The names of system calls are those of rule 12 in
// docs/in-process-rules.md.
#include <fcntl.h>
#include <fenv.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "tests/workloads/hosts/matrix.h"

namespace matrix {

unsigned g_seed = 0;

namespace {

struct Named {
  const char* name;
  unsigned number;
};

const Named kCalls[] = {
    {"fstat", __NR_fstat},
    {"newfstatat", __NR_newfstatat},
    {"poll", __NR_poll},
    {"ppoll", __NR_ppoll},
    {"recvfrom", __NR_recvfrom},
    {"sendmsg", __NR_sendmsg},
    {"futex", __NR_futex},
    {"clock_gettime", __NR_clock_gettime},
    {"madvise", __NR_madvise},
    {"mmap", __NR_mmap},
    {"munmap", __NR_munmap},
    {"mprotect", __NR_mprotect},
    {"mremap", __NR_mremap},
    {"brk", __NR_brk},
    {"prctl", __NR_prctl},
    {"setpriority", __NR_setpriority},
    {"pread64", __NR_pread64},
    {"socket", __NR_socket},
    {"connect", __NR_connect},
    {"fcntl", __NR_fcntl},
    {"close", __NR_close},
    {"openat", __NR_openat},
    {"fchmod", __NR_fchmod},
    {"flock", __NR_flock},
    {"pwrite64", __NR_pwrite64},
    {"fstatfs", __NR_fstatfs},
    {"prlimit64", __NR_prlimit64},
    {"unlinkat", __NR_unlinkat},
    {"tgkill", __NR_tgkill},
    {"sigaltstack", __NR_sigaltstack},
    {"getpid", __NR_getpid},
    {"gettid", __NR_gettid},
    {"clone3", __NR_clone3},
    {"sched_yield", __NR_sched_yield},
    {"memfd_create", __NR_memfd_create},
    {"clock_nanosleep", __NR_clock_nanosleep},
};

const Named kLimits[] = {{"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC},
                         {"as", RLIMIT_AS},         {"data", RLIMIT_DATA},
                         {"fsize", RLIMIT_FSIZE},   {"stack", RLIMIT_STACK}};

template <size_t kCount>
const Named* Find(const Named (&all)[kCount], const std::string& name) {
  for (const Named& known : all) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

unsigned Draw(unsigned below) { return static_cast<unsigned>(rand_r(&g_seed)) % below; }

// Up to 3 ms, at work.
void WorkForAWhile() {
  for (unsigned rounds = Draw(3000); rounds > 0; --rounds) Work(5);
}

void Alarms(void (*handle)(int), suseconds_t every_us) {
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval timer = {{0, every_us}, {0, every_us}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void NoAlarms() {
  const itimerval none = {};
  setitimer(ITIMER_REAL, &none, nullptr);
}

sigjmp_buf g_back;

void* WorkForEver(void*) {
  for (;;) {
    Work(10);
    pthread_testcancel();
  }
}

void* EndLater(void*) {
  WorkForAWhile();
  Say("the last thread ends", 0);
  return nullptr;
}

pid_t ForkBy(const char* how) {
  if (std::strcmp(how, "fork") == 0) return fork();
  if (std::strcmp(how, "_Fork") == 0) return _Fork();
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

}  // namespace

void Signals() {
  Alarms([](int) { Work(2); }, 100 + Draw(900));
  for (int i = 0; i < 20; ++i) WorkForAWhile();
  NoAlarms();
  Say("signals came", 0);
}

void LongJump() {
  volatile int jumps = 0;
  const suseconds_t every_us = 200 + Draw(900);
  if (sigsetjmp(g_back, 1) != 0) jumps = jumps + 1;
  if (jumps < 20) {
    Alarms([](int) { siglongjmp(g_back, 1); }, every_us);
    for (;;) Work(10);
  }
  NoAlarms();
  Say("jumped", jumps);
}

void Cancel() {
  pthread_t thread;
  void* result = nullptr;
  pthread_create(&thread, nullptr, WorkForEver, nullptr);
  WorkForAWhile();
  pthread_cancel(thread);
  pthread_join(thread, &result);
  Say("cancelled", result == PTHREAD_CANCELED);
}

void BlockEverySignal() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  raise(SIGTERM);
}

void TrapEveryFloat() { feenableexcept(FE_ALL_EXCEPT); }

void CloseEveryDescriptor() { close_range(3, ~0u, 0); }

void ExhaustDescriptors() {
  int taken = 0;
  const rlimit few = {700, 700};
  setrlimit(RLIMIT_NOFILE, &few);
  while (dup(STDOUT_FILENO) >= 0) ++taken;
  Say("more than 600 taken", taken > 600);
}

void LoseProc() {
  const bool lost = unshare(CLONE_NEWNS) == 0 &&
                    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    umount2("/proc", MNT_DETACH) == 0;
  Say("lost /proc", lost);
}

void Child(const char* how) {
  WorkForAWhile();
  const bool is_vfork = std::strcmp(how, "vfork") == 0;
  const pid_t child = is_vfork ? vfork() : ForkBy(how);
  if (child == 0) {
    if (!is_vfork) Work(10);
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Say("child", WEXITSTATUS(status));
}

void Exec() {
  WorkForAWhile();
  execl("/proc/self/exe", "matrix", "middle", "none", "1", nullptr);
}

void EndBySignal(bool by_raise) {
  const int ends[] = {SIGTERM, SIGKILL, SIGINT, SIGSEGV, SIGUSR1};
  const int number = ends[Draw(std::size(ends))];
  WorkForAWhile();
  by_raise ? raise(number) : kill(getpid(), number);
}

void LeaveMain() {
  pthread_t thread;
  pthread_create(&thread, nullptr, EndLater, nullptr);
  pthread_exit(nullptr);
}

void RawExitGroup() {
  WorkForAWhile();
  syscall(SYS_exit_group, 24);
}

bool FailCall(const std::string& call, unsigned error) {
  const Named* const known = Find(kCalls, call);
  if (known == nullptr) return false;
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, known->number, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(filter), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const bool in_all = Draw(2) == 1;
  const long failed =
      in_all ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)
             : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  Say("filter", static_cast<int>(failed));
  return true;
}

bool Limit(const std::string& resource, unsigned long value) {
  const Named* const known = Find(kLimits, resource);
  if (known == nullptr) return false;
  const rlimit both = {value, value};
  Say("limit", setrlimit(static_cast<__rlimit_resource>(known->number), &both));
  return true;
}

}  // namespace matrix
