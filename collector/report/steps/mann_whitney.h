#pragma once

#include <vector>

namespace ranktap::collector {

// The two-sided p-value of Mann and Whitney's U test.
double MannWhitney(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ranktap::collector
