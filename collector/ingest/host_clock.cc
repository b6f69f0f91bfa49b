#include "collector/ingest/host_clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "collector/ingest/monotonic_clock.h"

namespace ranktap::collector {
namespace {

// One interrupt among them does not matter, several would.
constexpr int kTries = 16;

uint64_t Tsc() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

}  // namespace

v1::ClockReading ReadClocks() {
  uint64_t best_spread = UINT64_MAX;
  v1::ClockReading best;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = MonotonicRawNs();
    const uint64_t tsc = Tsc();
    const uint64_t realtime = RealtimeNs();
    const uint64_t spread = MonotonicRawNs() - before;
    if (spread >= best_spread) continue;
    best_spread = spread;
    best.set_tsc(tsc);
    best.set_monotonic_raw_ns(before + spread / 2);
    best.set_realtime_ns(realtime);
    best.set_spread_ns(static_cast<uint32_t>(spread));
  }
  return best;
}

}  // namespace ranktap::collector
