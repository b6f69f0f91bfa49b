// A program that works, then locks itself up: from there on any system call that is not on the list
// ends the process, in every thread. The list is what the program needs and what
// docs/in-process-rules.md says that a traced process needs besides.
// usage: sandboxed LAUNCHES   before and after each
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/workloads/hosts/device_work.h"

namespace {

const unsigned kAllowed[] = {
    // The program, libc and the (stand-in) driver.
    __NR_read, __NR_write, __NR_writev, __NR_close, __NR_exit, __NR_exit_group,
    __NR_clock_nanosleep, __NR_sched_yield, __NR_ftruncate, __NR_pwrite64, __NR_truncate,
    __NR_clone3, __NR_prctl, __NR_rseq, __NR_set_robust_list,
    // A traced process.
    __NR_newfstatat, __NR_fstat, __NR_recvfrom, __NR_sendmsg, __NR_poll, __NR_ppoll,
    __NR_clock_gettime, __NR_futex, __NR_madvise, __NR_mmap, __NR_munmap, __NR_mprotect,
    __NR_mremap, __NR_brk, __NR_rt_sigprocmask, __NR_rt_sigreturn, __NR_getpid, __NR_gettid,
    __NR_setpriority};

bool LockUp() {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : kAllowed) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sandboxed LAUNCHES\n");
    return 2;
  }
  start_device(0);
  launch_in_ranges(std::atoi(argv[1]));
  if (!LockUp()) {
    std::perror("sandboxed: seccomp");
    return 77;
  }
  launch_in_ranges(std::atoi(argv[1]));
  std::printf("counts launches=%lu\n", launches_made());
  return 0;
}
