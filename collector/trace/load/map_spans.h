// Starts and ends of a table: values of a clock become nanoseconds of CLOCK_MONOTONIC_RAW.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collector/trace/clock_map.h"
#include "collector/trace/packed_column.h"

namespace ranktap::collector {

// First start and last end of what has times.
struct Bounds {
  int64_t first = INT64_MAX, last = INT64_MIN;

  void Cover(int64_t start, int64_t end) {
    first = std::min(first, start);
    last = std::max(last, end);
  }
};

enum class Zero { kIsATime, kMeansUntimed };

// Every value of both columns by ClockMap::Map, an end before its start as the start; `bounds`
// covers them. A start of 0 that means untimed makes both kUntimed, which `bounds` does not cover.
void MapSpans(const ClockMap& clock, Zero zero, TimeColumn* starts, TimeColumn* ends,
              Bounds* bounds);

}  // namespace ranktap::collector
