// The clock of host events: TSC cycles where the processor promises that they run at one rate on
// all cores and through sleep states, else CLOCK_MONOTONIC_RAW. Reading the TSC costs 9.6 ns in the
// virtual machine this was written on, clock_gettime 24 ns; an NVTX range needs two.
// Runs on: any thread.  May not: allocate, lock, log.
#pragma once

#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "proto/modes.h"

namespace ranktap::agent {

// Set by ChooseHostClock, before the first event; each time to the same.
extern proto::HostClockKind g_host_clock;

// Decides by CPUID's invariant-TSC bit.
void ChooseHostClock();

inline uint64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// Our threads wait and plan by it; it is not the events' clock.
inline uint64_t NowNs() { return ClockNs(CLOCK_MONOTONIC); }

inline uint64_t NowTicks() {
#if defined(__x86_64__)
  if (g_host_clock == proto::HostClockKind::kTsc) [[likely]]
    return __rdtsc();
#endif
  return ClockNs(CLOCK_MONOTONIC_RAW);
}

// Whether NowTicks() is one instruction, ReadTsc(), and no call. A hook whose usual way has no call
// has no registers to save, which was a tenth of an NVTX range.
inline bool TicksAreTsc() {
#if defined(__x86_64__)
  return g_host_clock == proto::HostClockKind::kTsc;
#else
  return false;
#endif
}
inline uint64_t ReadTsc() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return NowTicks();
#endif
}

// The three clocks, read back to back: v1.ClockReading.
struct ClockReading {
  uint64_t tsc;  // 0 where the host clock is not the TSC
  uint64_t monotonic_raw_ns;
  uint64_t realtime_ns;
  uint32_t spread_ns;  // width of the reading: no clock was read more than this apart
};

// The tightest of 16 tries: an interrupt between the reads shows as a wide one. About 1 µs.
ClockReading ReadClocks();

}  // namespace ranktap::agent
