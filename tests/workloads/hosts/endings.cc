// A process that works on a GPU and then ends in one of many ways.
// usage: endings HOW LAUNCHES|@FILE   @FILE: until there is such a file
//                               HOW: return exit _exit quick_exit abort segv terminate kill exec
//                               hang
//                               (kill: SIGKILL by itself; hang: waits for a signal, with work
//                               behind it)
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/workloads/hosts/device_work.h"

namespace {

struct Ending {
  const char* name;
  void (*end)();
};

const Ending kEndings[] = {
    {"return", [] {}},
    {"exit", [] { std::exit(3); }},
    {"_exit", [] { _exit(4); }},
    {"quick_exit", [] { std::quick_exit(5); }},
    {"abort", [] { std::abort(); }},
    {"segv",
     [] {
       volatile int* nowhere = nullptr;
       *nowhere = 1;
     }},
    {"terminate", [] { throw std::runtime_error("nobody catches this"); }},
    {"kill", [] { kill(getpid(), SIGKILL); }},
    {"exec",
     [] {
       execl("/bin/true", "true", static_cast<char*>(nullptr));
       _exit(127);
     }},
    {"hang",
     [] {
       for (;;) pause();
     }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: endings HOW LAUNCHES\n");
    return 2;
  }
  const char* const stop = argv[2][0] == '@' ? argv[2] + 1 : nullptr;
  int launches = stop != nullptr ? 0 : std::atoi(argv[2]);
  start_device(0);
  nvtxRangePushA("open at the end");
  for (int i = 0; stop != nullptr ? access(stop, F_OK) != 0 : i < launches; ++i) {
    if (stop != nullptr) {
      ++launches;
      usleep(1000);
    }
    nvtxRangePushA("work");
    launch_kernel(nullptr);
    nvtxRangePop();
  }
  cudaDeviceSynchronize();
  std::printf("counts launches=%d ranges=%d open=1\n", launches, launches);
  std::fflush(stdout);
  for (const Ending& ending : kEndings) {
    if (std::strcmp(ending.name, argv[1]) != 0) continue;
    ending.end();
    return 0;
  }
  std::fprintf(stderr, "endings: no ending called %s\n", argv[1]);
  return 2;
}
