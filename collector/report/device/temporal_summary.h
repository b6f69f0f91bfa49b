#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How much of the time from its first to its last device work did each rank compute, do something
// else on the device, or nothing? compute = |union of compute work|, idle = span - |union of all|,
// the rest is non-compute. --hta-compat: get_temporal_breakdown.
Table TabulateTemporal(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
