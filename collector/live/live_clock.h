// A process's clocks as of its last reading: what its times are on CLOCK_MONOTONIC_RAW, closely
// enough for a screen. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>

#include "ranktap/v1/control.pb.h"

namespace ranktap::collector {

class LiveClock {
 public:
  explicit LiveClock(bool is_tsc) : is_tsc_(is_tsc) {}

  void Note(const v1::ClockReadings& readings) {
    for (const v1::ClockReading& reading : readings.readings()) {
      if (first_.monotonic_raw_ns() == 0) first_ = reading;
      last_ = reading;
    }
    const auto ns = static_cast<double>(Since(last_.monotonic_raw_ns(), first_.monotonic_raw_ns()));
    const auto ticks = static_cast<double>(Since(last_.tsc(), first_.tsc()));
    ns_per_tick_ = ns >= kMeaningfulSpanNs && ticks > 0 ? ns / ticks : 0;
  }

  // None: no two readings have come yet that tell how long a tick is.
  std::optional<int64_t> OfHost(uint64_t ticks) const {
    if (!is_tsc_) return static_cast<int64_t>(ticks);
    if (ns_per_tick_ <= 0) return std::nullopt;
    const double ns = static_cast<double>(Since(ticks, last_.tsc())) * ns_per_tick_;
    // A process may say anything about its clocks.
    if (!(ns > -kMostNs && ns < kMostNs)) return std::nullopt;
    return static_cast<int64_t>(last_.monotonic_raw_ns()) + static_cast<int64_t>(ns);
  }
  // What a device's time (CLOCK_REALTIME) is more.
  uint64_t DeviceOffset() const { return last_.realtime_ns() - last_.monotonic_raw_ns(); }

 private:
  static constexpr double kMeaningfulSpanNs = 1e7, kMostNs = 4e18;
  static int64_t Since(uint64_t later, uint64_t earlier) {
    return static_cast<int64_t>(later - earlier);
  }

  bool is_tsc_;
  v1::ClockReading first_, last_;
  double ns_per_tick_ = 0;
};

}  // namespace ranktap::collector
