// Launches at a given rate, or as fast as they go; prints the rate it reached.
// usage: launches COUNT|@FILE [RATE_PER_SECOND [STREAMS]]   rate 0: as fast as possible; @FILE:
// until there is such a file
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/workloads/hosts/device_work.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: launches COUNT|@FILE [RATE_PER_SECOND [STREAMS]]\n");
    return 2;
  }
  using Clock = std::chrono::steady_clock;
  const char* const stop = argv[1][0] == '@' ? argv[1] + 1 : nullptr;
  long count = stop != nullptr ? 0 : std::atol(argv[1]);
  double rate = argc > 2 ? std::atof(argv[2]) : 0;
  int stream_count = argc > 3 ? std::atoi(argv[3]) : 1;
  start_device(0);
  std::vector<cudaStream_t> streams(static_cast<size_t>(stream_count));
  for (cudaStream_t& stream : streams) {
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 1;
  }
  nvtxRangePushA("launches");
  Clock::time_point begin = Clock::now();
  long failed = 0;
  for (long i = 0; stop != nullptr ? access(stop, F_OK) != 0 : i < count; ++i) {
    if (stop != nullptr) ++count;
    failed += launch_kernel(streams[static_cast<size_t>(i) % streams.size()]) != 0;
    if (rate <= 0) continue;
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(
                                              std::chrono::duration<double>(double(i + 1) / rate)));
  }
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  cudaDeviceSynchronize();
  nvtxRangePop();
  std::printf("counts launches=%lu ranges=1 failed=%ld\n", launches_made(), failed);
  std::fprintf(stderr, "%.0f launches per second, %.0f ns each\n", double(count) / seconds,
               seconds * 1e9 / double(count));
  return failed == 0 ? 0 : 1;
}
