// Divides each step's moments among causes that exclude each other and add up to the step. One step
// of 100 us, from kernel to kernel, whose all-reduce moves data for 8 us on any rank:
//
//   compute    gemm 0..40                  gemm 60..80, launched at 20  next gemm at 100,
//   NCCL               all-reduce 30..58                                launched at 94
//
//   compute     0..40, 60..80   60 us   hides the all-reduce's first 10 us
//   wait        40..50          10      the last member has not arrived
//   transfer    50..58           8
//   latency     58..60, 94..100  8      idle, and the next gemm was launched by then
//   host        80..94          14      idle, and nothing was launched; 60 + 10 + 8 + 8 + 14 = 100
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/step_list.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall {
  // As its devices ran them (StepsOnDevice); one step over the whole trace where none were found.
  StepList steps;
  double host_ahead = 0;          // DeviceSteps::host_ahead
  bool on_host = false;           // no device did anything
  std::vector<CauseTimes> times;  // by step; each sums to the step's length exactly
  CauseTimes mean{};              // over the steps after warm-up
  int64_t mean_step = 0;
  size_t counted = 0;
};

// The same of these steps alone, as positions in the list: they alone are counted.
RankWaterfall OnlySteps(const RankWaterfall& waterfall, const std::vector<size_t>& positions);

// One for each trace of the run. Worked out once and kept in the run's memo.
const std::vector<RankWaterfall>& ComputeWaterfalls(const Run& run);

}  // namespace ranktap::collector
