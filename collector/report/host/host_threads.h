// A row for each rank and class of its threads: what the kernel counted of them in counted steps,
// or where there are no steps, while they were sampled.
#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

Table TabulateHostThreads(const Run& run, const ReportOptions& options = {});

}  // namespace ranktap::collector
