// Programs that give up what they may do, and go on using NVTX.
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/workloads/hosts/hostile.h"

namespace hostile {
namespace {

void Say(const char* text) { (void)!write(STDOUT_FILENO, text, std::strlen(text)); }

// All but write and the end of a thread or process is death. `in_all`: in every thread.
bool InstallFilter(bool in_all, bool by_lookup) {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 3, 0),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit, 2, 0),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 1, 0),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (by_lookup) {
    const auto found = reinterpret_cast<decltype(&prctl)>(dlsym(RTLD_DEFAULT, "prctl"));
    return found(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
  }
  if (!in_all) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
  return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

bool Lock(const char* how) {
  if (std::strcmp(how, "strict") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
  if (std::strcmp(how, "tsc") == 0) return prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0;
  const bool by_lookup = std::strcmp(how, "dlsym") == 0;
  return InstallFilter(std::strcmp(how, "own") != 0 && !by_lookup, by_lookup);
}

}  // namespace

int LockUp(const char* how) {
  for (int i = 0; i < 100; ++i) Mark();
  if (!Lock(how)) return 77;
  Say("locked\n");
  // Long enough for a beat of whoever has threads here.
  for (int i = 0; i < 30'000'000; ++i) {
    if (i % 1000 == 0) Mark();
    asm volatile("" ::: "memory");
  }
  Say("done\n");
  if (std::strcmp(how, "strict") == 0) syscall(SYS_exit, 5);
  return 5;
}

}  // namespace hostile
