// The clock of every timeout and time stamp of the collector.
#pragma once

#include <cstdint>
#include <ctime>

namespace ranktap::collector {

inline uint64_t ReadClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}
// Does not stop, step or slew: what traces are stamped with.
inline uint64_t MonotonicRawNs() { return ReadClockNs(CLOCK_MONOTONIC_RAW); }
inline uint64_t RealtimeNs() { return ReadClockNs(CLOCK_REALTIME); }

}  // namespace ranktap::collector
