// A row for each rank and step: what its main thread was found doing, and the line that has most of
// it.
#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

Table TabulateHostSteps(const Run& run, const ReportOptions& options = {});

}  // namespace ranktap::collector
