// Processes that die at a seeded moment while their threads work, each keeping a ledger of what it
// had done, which outlives it.
// usage: dies one HOW LOOPS THREADS LEDGER     HOW: kill abort segv _exit
//        dies storm HOW COUNT SEED FOLDER      COUNT of them, a few at a time; ledgers in
//        FOLDER/PID
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/workloads/hosts/device_work.h"
#include "tests/workloads/hosts/dies_ledger.h"

extern char** environ;

namespace {

constexpr int kAtOnce = 3;

struct Death {
  const char* name;
  void (*die)();
  bool (*is)(int status);
};

const Death kDeaths[] = {
    {"kill", [] { kill(getpid(), SIGKILL); },
     [](int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }},
    {"abort", [] { std::abort(); },
     [](int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT; }},
    {"segv",
     [] {
       volatile int* nowhere = nullptr;
       *nowhere = 1;
     },
     [](int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV; }},
    {"_exit", [] { _exit(7); },
     [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 7; }},
};

const Death* Find(const char* name) {
  for (const Death& death : kDeaths) {
    if (std::strcmp(death.name, name) == 0) return &death;
  }
  std::fprintf(stderr, "dies: no death called %s\n", name);
  return nullptr;
}

// `loops` 0: until somebody else's end.
void Work(long loops, LedgerLine* line) {
  line->thread.store(static_cast<int32_t>(syscall(SYS_gettid)));
  for (long i = 0; loops == 0 || i < loops; ++i) {
    nvtxRangePushA("loop");
    if (launch_kernel(nullptr) == 0) line->launches.fetch_add(1);
    nvtxRangePop();
    line->ranges.fetch_add(1);
    // Faster than any training, slow enough for the rings to keep everything.
    if (loops == 0) usleep(20);
  }
}

int DieOnce(const Death& death, long loops, int threads, const char* ledger_path) {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int fd = open(ledger_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Ledger)) != 0) return 2;
  void* const mapped = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return 2;
  auto* const ledger = static_cast<Ledger*>(mapped);
  close(fd);
  start_device(0);
  for (int i = 1; i < threads && i < kLedgerThreads; ++i) {
    std::thread(Work, 0, &ledger->lines[i]).detach();
  }
  Work(loops, &ledger->lines[0]);
  death.die();
  return 3;
}

int Storm(const char* program, const Death& death, int count, unsigned seed,
          const std::string& folder) {
  std::mt19937 random(seed);
  int started = 0, ended = 0, right = 0;
  while (ended < count) {
    while (started < count && started - ended < kAtOnce) {
      const std::string loops = std::to_string(1 + random() % 300);
      const std::string threads = std::to_string(1 + random() % kLedgerThreads);
      const std::string ledger = folder + "/" + std::to_string(started++);
      const char* arguments[] = {program,         "one",          death.name, loops.c_str(),
                                 threads.c_str(), ledger.c_str(), nullptr};
      pid_t child;
      if (posix_spawn(&child, program, nullptr, nullptr, const_cast<char**>(arguments), environ) !=
          0) {
        return 2;
      }
    }
    int status = 0;
    if (wait(&status) <= 0) return 2;
    ++ended;
    right += death.is(status) ? 1 : 0;
  }
  std::printf("counts died=%d as_asked=%d\n", ended, right);
  return right == count ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Death* const death = argc == 6 ? Find(argv[2]) : nullptr;
  if (death == nullptr) {
    std::fprintf(stderr,
                 "usage: dies one HOW LOOPS THREADS LEDGER | storm HOW COUNT SEED FOLDER\n");
    return 2;
  }
  if (std::strcmp(argv[1], "storm") == 0) {
    return Storm(argv[0], *death, std::atoi(argv[3]), static_cast<unsigned>(std::atol(argv[4])),
                 argv[5]);
  }
  return DieOnce(*death, std::atol(argv[3]), std::atoi(argv[4]), argv[5]);
}
