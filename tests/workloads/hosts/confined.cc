// Runs a program under limits, or without some system calls.
// usage: confined [limit=NAME:VALUE | HOW=SYSCALL]... -- PROGRAM [ARGUMENT]...
//   limit: resource limit; HOW: deny: fails with EPERM; eio: with EIO; eintr: with EINTR;
//   kill: ends the process (SIGSYS)
//   deny=wipeonfork: madvise does not know MADV_WIPEONFORK (EINVAL), as in gVisor
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Named {
  const char* name;
  unsigned number;
};

const Named kLimits[] = {
    {"nofile", RLIMIT_NOFILE}, {"fsize", RLIMIT_FSIZE}, {"as", RLIMIT_AS},
    {"stack", RLIMIT_STACK},   {"nproc", RLIMIT_NPROC}, {"memlock", RLIMIT_MEMLOCK},
    {"data", RLIMIT_DATA},     {"core", RLIMIT_CORE},   {"sigpending", RLIMIT_SIGPENDING},
};

constexpr unsigned kWipeOnForkOnly = 1u << 30;  // no system call's number

const Named kCalls[] = {
    {"wipeonfork", kWipeOnForkOnly},
    {"socket", __NR_socket},
    {"connect", __NR_connect},
    {"sendmsg", __NR_sendmsg},
    {"recvfrom", __NR_recvfrom},
    {"poll", __NR_poll},
    {"memfd_create", __NR_memfd_create},
    {"fcntl", __NR_fcntl},
    {"madvise", __NR_madvise},
    {"getrandom", __NR_getrandom},
    {"prctl", __NR_prctl},
    {"getrlimit", __NR_prlimit64},
    {"setpriority", __NR_setpriority},
    {"sched_setscheduler", __NR_sched_setscheduler},
    {"process_vm_readv", __NR_process_vm_readv},
    {"membarrier", __NR_membarrier},
    {"uname", __NR_uname},
    {"readlink", __NR_readlink},
    {"clone3", __NR_clone3},
    {"ftruncate", __NR_ftruncate},
    {"fallocate", __NR_fallocate},
    {"pwrite", __NR_pwrite64},
    {"writev", __NR_writev},
    {"fdatasync", __NR_fdatasync},
    {"futex", __NR_futex},
    {"signalfd4", __NR_signalfd4},
};

const Named* Find(const Named* begin, const Named* end, const std::string& name) {
  for (; begin != end; ++begin) {
    if (name == begin->name) return begin;
  }
  std::fprintf(stderr, "confined: %s is not known\n", name.c_str());
  std::exit(2);
}

unsigned ActionOf(const std::string& how) {
  if (how == "kill") return SECCOMP_RET_KILL_PROCESS;
  return SECCOMP_RET_ERRNO | (how == "eio" ? EIO : how == "eintr" ? EINTR : EPERM);
}

void Limit(const std::string& text) {
  const size_t colon = text.find(':');
  const Named* limit = Find(std::begin(kLimits), std::end(kLimits), text.substr(0, colon));
  const rlim_t value = std::strtoull(text.c_str() + colon + 1, nullptr, 10);
  const rlimit both = {value, value};
  if (setrlimit(static_cast<__rlimit_resource>(limit->number), &both) == 0) return;
  std::perror("confined: setrlimit");
  std::exit(2);
}

void DenyWipeOnFork(std::vector<sock_filter>* program) {
  constexpr unsigned kWipeOnFork = 18;
  program->push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_madvise, 0, 4));
  program->push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])));
  program->push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kWipeOnFork, 0, 1));
  program->push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL));
  program->push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
}

void Filter(const std::vector<Named>& calls, const std::vector<unsigned>& actions) {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].number == kWipeOnForkOnly) {
      DenyWipeOnFork(&program);
      continue;
    }
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, actions[i]));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0) {
    return;
  }
  std::perror("confined: seccomp");
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Named> calls;
  std::vector<unsigned> actions;
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string kind = argument.substr(0, equals), what = argument.substr(equals + 1);
    if (kind == "limit") {
      Limit(what);
    } else {
      calls.push_back(*Find(std::begin(kCalls), std::end(kCalls), what));
      actions.push_back(ActionOf(kind));
    }
  }
  if (i + 1 >= argc) {
    std::fprintf(stderr, "usage: confined [limit=NAME:VALUE | HOW=CALL]... -- PROGRAM\n");
    return 2;
  }
  if (!calls.empty()) Filter(calls, actions);
  execv(argv[i + 1], argv + i + 1);
  std::perror("confined: exec");
  return 127;
}
