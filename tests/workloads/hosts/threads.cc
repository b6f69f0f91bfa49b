// Many threads on one GPU: few that stay, or thousands that come and go.
// usage: threads AT_ONCE TOTAL LAUNCHES RANGES   TOTAL threads, AT_ONCE at a time; per thread so
// many
//                                                launches and ranges
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/workloads/hosts/device_work.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: threads AT_ONCE TOTAL LAUNCHES RANGES\n");
    return 2;
  }
  int at_once = std::atoi(argv[1]), total = std::atoi(argv[2]);
  int launches = std::atoi(argv[3]), ranges = std::atoi(argv[4]);
  std::atomic<int> failed{0};
  start_device(0);
  auto work = [&] {
    start_device(0);
    for (int i = 0; i < launches || i < ranges; ++i) {
      if (i < ranges) nvtxRangePushA("work of a thread");
      if (i < launches && launch_kernel(cudaStreamPerThread) != 0) failed.fetch_add(1);
      if (i < ranges) nvtxRangePop();
    }
    cudaStreamSynchronize(cudaStreamPerThread);
  };
  for (int started = 0; started < total; started += at_once) {
    std::vector<std::thread> threads;
    for (int i = 0; i < at_once && started + i < total; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
  }
  cudaDeviceSynchronize();
  std::printf("counts launches=%lu ranges=%ld threads=%d failed=%d\n", launches_made(),
              static_cast<long>(total) * ranges, total, failed.load());
  return failed.load() == 0 ? 0 : 1;
}
