// Many threads that each do little, and a program in a small container.
// usage: crowd live THREADS ROUNDS    all at once, a range a round, ten rounds a second
//        crowd short THREADS          one after the other, a range each
//        crowd small MIB TASKS        joins the control group whose list of tasks this is, uses so
//                                     many MiB, and makes two million ranges
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

void Range() {
  nvtxRangePushA("of one of many");
  nvtxRangePop();
}

int Live(int threads, int rounds) {
  std::vector<std::thread> all;
  std::atomic<int> begun{0};
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      Range();
      ++begun;
      while (begun.load() < threads) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      for (int round = 1; round < rounds; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        Range();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  std::printf("counts ranges=%d\n", threads * rounds);
  return 0;
}

int Short(int threads) {
  for (int i = 0; i < threads; ++i) std::thread(Range).join();
  std::printf("counts ranges=%d\n", threads);
  return 0;
}

int Small(int mib, const char* tasks) {
  std::FILE* file = std::fopen(tasks, "w");
  if (file == nullptr) return 77;
  std::fprintf(file, "%d\n", getpid());
  if (std::fclose(file) != 0) return 77;
  const size_t bytes = static_cast<size_t>(mib) << 20;
  char* memory = static_cast<char*>(std::malloc(bytes));
  if (memory == nullptr) return 1;
  std::memset(memory, 1, bytes);
  for (int i = 0; i < 2'000'000; ++i) Range();
  std::printf("counts mib=%d last=%d\n", mib, memory[bytes - 1]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: crowd live|short|small COUNT [ROUNDS|TASKS]\n");
    return 2;
  }
  const int count = std::atoi(argv[2]);
  if (std::strcmp(argv[1], "short") == 0) return Short(count);
  if (argc < 4) return 2;
  return std::strcmp(argv[1], "live") == 0 ? Live(count, std::atoi(argv[3]))
                                           : Small(count, argv[3]);
}
