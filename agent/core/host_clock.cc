// Choosing and reading the clocks.
// Runs on: the thread that starts the agent; the sender and drain threads.  May not: run in a
// constructor.
#include "agent/core/host_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ranktap::agent {

constinit proto::HostClockKind g_host_clock = proto::HostClockKind::kMonotonicRaw;

void ChooseHostClock() {
#if defined(__x86_64__)
  constexpr unsigned kAdvancedPowerLeaf = 0x80000007;
  constexpr unsigned kInvariantTsc = 1u << 8;  // in EDX
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(kAdvancedPowerLeaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTsc) != 0) {
    g_host_clock = proto::HostClockKind::kTsc;
  }
#endif
}

ClockReading ReadClocks() {
  constexpr int kTries = 16;
  const bool use_tsc = g_host_clock == proto::HostClockKind::kTsc;
  ClockReading best{.tsc = 0, .monotonic_raw_ns = 0, .realtime_ns = 0, .spread_ns = UINT32_MAX};
  for (int i = 0; i < kTries; ++i) {
    const uint64_t raw_before = ClockNs(CLOCK_MONOTONIC_RAW);
    const uint64_t tsc = use_tsc ? NowTicks() : 0;
    const uint64_t realtime = ClockNs(CLOCK_REALTIME);
    const uint64_t raw_after = ClockNs(CLOCK_MONOTONIC_RAW);
    const uint64_t spread = raw_after - raw_before;
    if (spread >= best.spread_ns) continue;
    best = {.tsc = tsc,
            .monotonic_raw_ns = raw_before + spread / 2,
            .realtime_ns = realtime,
            .spread_ns = static_cast<uint32_t>(spread)};
  }
  return best;
}

}  // namespace ranktap::agent
