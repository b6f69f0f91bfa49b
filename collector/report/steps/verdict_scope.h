// What a verdict can be about: whether a run's files tell of times and devices, and of how much.
#pragma once

#include <string>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

bool AnythingRanOnADevice(const Run& run);

// Why the run's files hold no times; empty: they do.
std::string WhyNoTimes(const Run& run);

// "20 steps of 2 ranks by ProfilerStep; left out: 2 of warm-up", "no steps were found: all of the
// time of 1 rank counts as one"; empty: nothing is counted.
std::string WhichSteps(const Run& run);
// "figures are of 20 steps of 2 ranks by ProfilerStep, on device 0 NVIDIA H100"
std::string WhatIsCovered(const Run& run);

// "The 3 steps found are 80.00 ms of the trace's 8.700 s (0.9 %). ": where a verdict is about
// little of what is recorded. Empty: it is about a tenth or more.
std::string HowLittle(const Run& run, const std::vector<RankWaterfall>& waterfalls);

}  // namespace ranktap::collector
