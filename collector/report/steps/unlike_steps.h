// What a verdict says before a mean that is the length of no step, and *steps* of the longest.
#pragma once

#include <cstdint>
#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

// A difference ends in the module, node or kernel, and with samples the line, that has most of it:
// "(most in Net.experts), at train.py:97 (main)".
//
// "Steps 0 to 9 take 102.0 ms, steps 10 to 49 11.00 ms (medians); the difference is before the
// forward pass. ", "3 of 60 steps (15, 35, 55) take 200.0 ms and have 78.0 % of the time, mostly
// waiting for data; the others take 7.000 ms (medians). ". Empty: steps are alike.
std::string DescribeUnlikeSteps(const Run& run);

// "step 35 takes 195.0 ms more than the median, mostly waiting for data". Empty: it takes less than
// half of it more, there are fewer than three other steps, or our recording made it longer.
std::string DescribeLongestStep(const Run& run, uint32_t trace);

}  // namespace ranktap::collector
