// What an NVTX range costs the program, push and pop, by how its name is given. A program like any
// other: which library serves its NVTX calls, if any, the environment decides. Pauses between
// bursts, so that a collector keeps up. Prints "case ns" lines; the case "clock" is two readings of
// the clock that an agent reads, which no tool can do without.
#include <nvtx3/nvToolsExt.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <cstdint>
#include <string>

#include "tests/bench/figure.h"

namespace {

constexpr int kBurst = 5'000;
constexpr int kBursts = 60;

uint64_t ReadClock() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_nsec);
#endif
}

template <typename Range>
void Measure(const char* name, Range&& range) {
  std::vector<double> bursts;
  for (int burst = 0; burst < kBursts; ++burst) {
    const double start = ranktap::bench::NowNs();
    for (int i = 0; i < kBurst; ++i) {
      range();
    }
    bursts.push_back((ranktap::bench::NowNs() - start) / kBurst);
    const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
    nanosleep(&pause, nullptr);
  }
  std::ranges::sort(bursts);
  std::printf("%s %.2f\n", name, bursts[bursts.size() / 2]);
}

}  // namespace

int main() {
  const std::string name16 = "forward/layer/10";
  const std::string name64(64, 'n');
  nvtxDomainHandle_t domain = nvtxDomainCreateA("bench");
  nvtxEventAttributes_t registered{};
  registered.version = NVTX_VERSION;
  registered.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  registered.message.registered = nvtxDomainRegisterStringA(domain, "registered");

  Measure("clock", [] {
    ranktap::bench::Keep(ReadClock());
    ranktap::bench::Keep(ReadClock());
  });
  Measure("repeated-16B", [&] {
    nvtxRangePushA(name16.c_str());
    nvtxRangePop();
  });
  Measure("repeated-64B", [&] {
    nvtxRangePushA(name64.c_str());
    nvtxRangePop();
  });
  Measure("registered", [&] {
    nvtxRangePushEx(&registered);
    nvtxRangePop();
  });
  return 0;
}
