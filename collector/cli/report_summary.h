// What `ranktap report RUN` prints where no report is named.
#pragma once

#include <vector>

#include "collector/report/report.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The first is the verdict.
std::vector<const Report*> SummaryOf(const Run& run);

// For a run with work on devices: what options are for that are given without a name.
std::vector<const Report*> UsualSummary();

}  // namespace ranktap::collector
