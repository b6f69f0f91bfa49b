#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How much of the communication hides behind computation? overlap = |comm and compute| / |comm|,
// exposed = |comm without compute|. --hta-compat: get_comm_comp_overlap.
Table TabulateOverlap(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
