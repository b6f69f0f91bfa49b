#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Why was each stream idle between two pieces of work? Gaps count from the latest end so far.
// host_wait: the next one's launch began after that; kernel_wait: shorter than 30 us otherwise;
// other: the rest. --hta-compat: get_idle_time_breakdown, whose gaps count from the previous end.
Table TabulateIdle(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
