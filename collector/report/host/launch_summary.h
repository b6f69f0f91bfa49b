#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How long do launches take, and how long until the work begins? launch_delay = max(0, start of the
// work - end of the launch). --hta-compat: get_cuda_kernel_launch_stats, which knows four launch
// functions; the default takes every call that work was joined to.
Table TabulateLaunches(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
