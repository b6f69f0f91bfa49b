// Children that are forked before the program has touched a GPU, each of which then works on one.
// usage: forks_first CHILDREN LAUNCHES
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/workloads/hosts/device_work.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: forks_first CHILDREN LAUNCHES\n");
    return 2;
  }
  const int children = std::atoi(argv[1]), launches = std::atoi(argv[2]);
  for (int i = 0; i < children; ++i) {
    if (fork() != 0) continue;
    start_device(0);
    for (int k = 0; k < launches; ++k) launch_kernel(nullptr);
    cudaDeviceSynchronize();
    std::exit(0);
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed += status != 0;
  std::printf("counts children=%d failed=%d\n", children, failed);
  return failed;
}
