// What a verdict says before a mean that is the length of no step.
#pragma once

#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

// "Steps 0 to 9 take 102.0 ms, steps 10 to 49 11.00 ms (medians); the difference is before the
// forward pass. ", "3 of 60 steps (15, 35, 55) take 200.0 ms and have 78.0 % of the time, mostly
// waiting for data; the others take 7.000 ms (medians). ". Empty: steps are alike.
std::string DescribeUnlikeSteps(const Run& run);

}  // namespace ranktap::collector
