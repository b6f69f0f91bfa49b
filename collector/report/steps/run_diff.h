// Two runs side by side.
#pragma once

#include <vector>

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What takes longer in `after` than in `before`? One row for the step, each kernel and each
// operator, the step first, then the largest difference. Times and calls are means per step of a
// rank, warm-up left out; where a run has no steps, a rank's whole trace counts as one.
//   p_value      that the steps of both runs are of one distribution: Mann-Whitney's U over steps,
//                normal approximation with correction for ties; needs 5 steps of each run
//   significant  "yes" where p_value < 0.01
Table TabulateDiff(const Run& before, const Run& after);

// The two-sided p-value of Mann and Whitney's U test.
double MannWhitney(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ranktap::collector
