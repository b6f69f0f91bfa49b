// How long a thread of a program is held by its calls, at worst. A call during which the scheduler
// took the CPU away (an involuntary switch) says nothing about the call and is counted apart.
// usage: stalls SECONDS   one thread launches kernels, two push and pop ranges
#include <nvtx3/nvToolsExt.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/workloads/hosts/device_work.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Held {
  long calls = 0, preempted = 0, waited = 0;
  long longest_ns = 0;
};

template <typename Call>
Held Measure(Clock::time_point end, Call&& call) {
  Held held;
  for (int i = 0; i < 1000; ++i) call();  // rings, names and caches are there
  rusage before, after;
  getrusage(RUSAGE_THREAD, &before);
  while (Clock::now() < end) {
    const Clock::time_point begin = Clock::now();
    call();
    const long ns = (Clock::now() - begin).count();
    getrusage(RUSAGE_THREAD, &after);
    ++held.calls;
    if (after.ru_nivcsw != before.ru_nivcsw) {
      ++held.preempted;
    } else {
      held.waited += after.ru_nvcsw - before.ru_nvcsw;
      held.longest_ns = std::max(held.longest_ns, ns);
    }
    before = after;
    // At a rate that a collector keeps up with while it is there.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    getrusage(RUSAGE_THREAD, &before);
  }
  return held;
}

void Print(const char* what, const std::vector<Held>& all) {
  Held sum;
  for (const Held& held : all) {
    sum.calls += held.calls;
    sum.preempted += held.preempted;
    sum.waited += held.waited;
    sum.longest_ns = std::max(sum.longest_ns, held.longest_ns);
  }
  std::printf("%s: calls=%ld preempted=%ld waited=%ld longest_us=%.1f\n", what, sum.calls,
              sum.preempted, sum.waited, static_cast<double>(sum.longest_ns) / 1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: stalls SECONDS\n");
    return 2;
  }
  start_device(0);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  std::vector<Held> ranges(2), launches(1);
  std::vector<std::thread> threads;
  for (Held& held : ranges) {
    threads.emplace_back([&held, end] {
      held = Measure(end, [] {
        nvtxRangePushA("range");
        nvtxRangePop();
      });
    });
  }
  threads.emplace_back([&] { launches[0] = Measure(end, [] { launch_kernel(nullptr); }); });
  for (std::thread& thread : threads) thread.join();
  Print("ranges", ranges);
  Print("launches", launches);
  return 0;
}
