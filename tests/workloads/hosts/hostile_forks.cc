// Forks while another thread is inside its first NVTX call, which is when an injected library
// starts. A first call is made once in a process: so one process is made for each try.
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/workloads/hosts/hostile.h"

namespace hostile {
namespace {

constexpr int kTries = 12;
constexpr int kChildrenOfAThread = 4;

int InChild(void*) {
  alarm(2);  // ends a child that hangs
  Mark();
  _exit(3);
}

pid_t MakeChild(const char* how) {
  if (std::strcmp(how, "clone") == 0) {
    static thread_local char stack[64 << 10];
    return clone(&InChild, stack + sizeof(stack), SIGCHLD, nullptr);
  }
  const pid_t child = std::strcmp(how, "raw") == 0     ? static_cast<pid_t>(syscall(SYS_fork))
                      : std::strcmp(how, "_Fork") == 0 ? _Fork()
                                                       : fork();
  if (child == 0) InChild(nullptr);
  return child;
}

// How many children ended as they should.
int ForkSome(const char* how, const std::atomic<bool>& go) {
  while (!go.load()) {
  }
  int ended = 0;
  for (int i = 0; i < kChildrenOfAThread; ++i) {
    const pid_t child = MakeChild(how);
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
        WEXITSTATUS(status) == 3) {
      ++ended;
    }
  }
  return ended;
}

// Fetches the pages of the injected library that NVTX's start needs, as in a process where another
// object's NVTX has started before. In a process just forked none is there, and a page that is
// fetched waits for every fork of the other threads: 1 to 5 good tries of 12 on two busy cores,
// with this 9 to 12.
void FetchInjection() {
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  if (path == nullptr) return;
  void* const library = dlopen(path, RTLD_LAZY);
  if (library == nullptr) return;
  (void)dlsym(library, "InitializeInjectionNvtx2");
  dlclose(library);
}

[[noreturn]] void TryOnce(const char* how, int threads) {
  FetchInjection();
  std::atomic<bool> go{false};
  std::atomic<int> ended{0};
  std::vector<std::thread> forking;
  for (int i = 0; i < threads; ++i) {
    forking.emplace_back([&] { ended += ForkSome(how, go); });
  }
  go.store(true);
  Mark();
  for (std::thread& thread : forking) thread.join();
  std::exit(ended == threads * kChildrenOfAThread ? 0 : 1);
}

}  // namespace

int ForkLater(const char* how) {
  Mark();
  int good = 0;
  for (int i = 0; i < kTries; ++i) {
    const pid_t child = MakeChild(how);
    int status = 0;
    waitpid(child, &status, 0);
    good += WIFEXITED(status) && WEXITSTATUS(status) == 3 ? 1 : 0;
    Mark();
  }
  std::printf("%d of %d\n", good, kTries);
  return 0;
}

int ForkAtStart(const char* how, int threads) {
  int good = 0;
  for (int i = 0; i < kTries; ++i) {
    const pid_t child = fork();
    if (child == 0) TryOnce(how, threads);
    int status = 0;
    waitpid(child, &status, 0);
    good += status == 0 ? 1 : 0;
  }
  // NVTX itself has a moment, some 10 us long, in which a fork makes a child that it will not
  // serve; on a loaded machine its thread may lose the processor right there.
  if (good >= kTries - 2) {
    std::printf("as good as all\n");
  } else {
    std::printf("%d of %d\n", good, kTries);
  }
  return 0;
}

}  // namespace hostile
