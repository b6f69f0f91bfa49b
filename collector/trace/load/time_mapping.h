// Maps every time of a loaded trace to nanoseconds of CLOCK_MONOTONIC_RAW, and joins ranges while
// their times are still ticks. One step of loading.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collector/trace/load/range_matcher.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

using GapsByStart = std::map<std::pair<std::string, uint64_t>, v1::Gap>;

struct RawTimes {
  const std::vector<v1::ClockReading>& readings;
  const GapsByStart& gaps;
  const v1::OpenCalls& open_calls;
};

void MapTimes(const RawTimes& raw, RangeMatcher* matcher, Trace* trace);

}  // namespace ranktap::collector
