// What inheriting the environment costs a process that touches neither CUDA nor NVTX: /bin/true
// with and without the agent preloaded, in turn. Usage: spawn_bench LIBRANKTAP
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/bench/figure.h"

namespace {

double SpawnUs(char* const* environment) {
  char path[] = "/bin/true";
  char* arguments[] = {path, nullptr};
  const double start = ranktap::bench::NowNs();
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, path, nullptr, nullptr, arguments, environment) != 0 ||
      waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "spawn_bench: /bin/true failed\n");
    std::exit(1);
  }
  return (ranktap::bench::NowNs() - start) / 1000;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string library = argv[1];
  std::string preload = "LD_PRELOAD=" + library;
  std::string cuda = "CUDA_INJECTION64_PATH=" + library;
  std::string nvtx = "NVTX_INJECTION64_PATH=" + library;
  std::string socket = "RANKTAP_SOCKET=/nowhere";
  char* with[] = {preload.data(), cuda.data(), nvtx.data(), socket.data(), nullptr};
  char* without[] = {nullptr};
  std::vector<double> extra;
  std::vector<double> bare;
  for (int i = 0; i < 1000; ++i) {
    bare.push_back(SpawnUs(without));
    extra.push_back(SpawnUs(with) - bare.back());
  }
  std::ranges::sort(extra);
  std::ranges::sort(bare);
  ranktap::bench::Print({.name = "a process without CUDA or NVTX, added to its start",
                         .value = extra[extra.size() / 2],
                         .unit = "us",
                         .floor_name = "the bare process",
                         .floor = bare[bare.size() / 2],
                         .target = 200});
  return 0;
}
