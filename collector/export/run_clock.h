// Times of all ranks of a run on one clock: CLOCK_REALTIME in nanoseconds.
#pragma once

#include <cstdint>

#include "collector/trace/run.h"

namespace ranktap::collector {

// To be added to the trace's times. Ranks of one boot of one host share CLOCK_MONOTONIC_RAW: one
// offset for all of them keeps their order exact, whatever CLOCK_REALTIME did between their last
// readings.
int64_t RealtimeOffset(const Run& run, const Trace& trace);

// The first event of all traces, on CLOCK_REALTIME; 0 when there is none.
int64_t FirstRealtime(const Run& run);

}  // namespace ranktap::collector
