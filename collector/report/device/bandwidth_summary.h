#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How fast are copies and memsets? Sum of the bandwidths of what runs at the same time, by kind,
// over the moments at which it changes and is not 0. --hta-compat: get_memory_bw_summary.
Table TabulateBandwidth(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
