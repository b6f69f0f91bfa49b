// Two runs side by side.
#pragma once

#include <vector>

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The two-sided p-value of Mann and Whitney's U test.
double MannWhitney(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ranktap::collector
