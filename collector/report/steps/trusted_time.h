// Whether shares of a run's time can be believed. A part of verdict.h.
#pragma once

#include <string>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

// Why no share of time can be trusted, for "No verdict: ...": what of the run is missing. Empty:
// nothing is.
std::string WhatIsMissing(const Run& run);

// The same where two ways to one number disagree, so that one of them is wrong: the parts of a step
// against its length, the time that computes in steps against *temporal*'s for the same time and
// against what the steps launched, the number of steps against how often the device's work repeats.
std::string WhatDisagrees(const Run& run, const std::vector<RankWaterfall>& waterfalls);
// By the run's own waterfalls. Worked out once and kept in the run's memo.
const std::string& WhatDisagrees(const Run& run);

}  // namespace ranktap::collector
