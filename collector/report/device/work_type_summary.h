#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What kinds of work ran, alone or at the same time as others? Exclusive times by combination.
// --hta-compat: the first table of get_gpu_kernel_breakdown, which cuts each piece to whole us.
Table TabulateWorkTypes(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
