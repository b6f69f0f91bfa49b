// Where each moment of a step went: causes that exclude each other and add up to the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/steps.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall {
  // As its devices ran them (StepsOnDevice); one step over all device work where none were found.
  StepList steps;
  double host_ahead = 0;          // DeviceSteps::host_ahead
  bool on_host = false;           // no device did anything
  std::vector<CauseTimes> times;  // by step; each sums to the step's length exactly
  CauseTimes mean{};              // over the steps after warm-up
  int64_t mean_step = 0;
  size_t counted = 0;
};

// One for each trace of the run. Worked out once and kept in the run's memo.
const std::vector<RankWaterfall>& ComputeWaterfalls(const Run& run);

}  // namespace ranktap::collector
