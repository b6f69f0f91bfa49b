// Children made in every way while threads work on a GPU. A child does nothing that a forked child
// may not do, unless asked to: `touch` makes it call CUDA and NVTX, which must fail cleanly or do
// nothing. usage: forks WAY CHILDREN THREADS [touch]   WAY: fork raw vfork spawn
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/workloads/hosts/device_work.h"

extern char** environ;

namespace {

std::atomic<bool> g_stop{false};
std::atomic<unsigned long> g_ranges{0};
bool g_touch = false;

void Work() {
  start_device(0);
  while (!g_stop.load()) {
    nvtxRangePushA("beside the forks");
    launch_kernel(nullptr);
    nvtxRangePop();
    g_ranges.fetch_add(1);
    std::this_thread::yield();
  }
}

[[noreturn]] void BeChild() {
  if (g_touch) {
    nvtxRangePushA("in the child");
    nvtxRangePop();
    // An initialised CUDA does not survive a fork: the call has to fail.
    if (launch_kernel(nullptr) == cudaSuccess) _exit(9);
  }
  _exit(0);
}

// The child's exit status; -1 when it could not be made.
int MakeChild(const char* way) {
  pid_t child = -1;
  if (std::strcmp(way, "fork") == 0) {
    child = fork();
    if (child == 0) BeChild();
  } else if (std::strcmp(way, "raw") == 0) {
    child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) BeChild();
  } else if (std::strcmp(way, "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", static_cast<char*>(nullptr));
      _exit(127);
    }
  } else if (std::strcmp(way, "spawn") == 0) {
    char* arguments[] = {const_cast<char*>("true"), nullptr};
    if (posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ) != 0) return -1;
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: forks WAY CHILDREN THREADS [touch]\n");
    return 2;
  }
  int children = std::atoi(argv[2]), threads = std::atoi(argv[3]), failed = 0;
  g_touch = argc > 4 && std::strcmp(argv[4], "touch") == 0;
  start_device(0);
  nvtxRangePushA("forks");
  launch_kernel(nullptr);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(Work);
  for (int i = 0; i < children; ++i) failed += MakeChild(argv[1]) != 0;
  g_stop = true;
  for (std::thread& worker : workers) worker.join();
  nvtxRangePop();
  cudaDeviceSynchronize();
  std::printf("counts launches=%lu ranges=%lu children=%d failed=%d\n", launches_made(),
              g_ranges.load() + 1, children, failed);
  return failed == 0 ? 0 : 1;
}
