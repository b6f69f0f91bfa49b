// Every finding of a run under a stable id: verdict, insights, hang and losses, for programs.
#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

Table TabulateFindings(const Run& run, const ReportOptions& options = {});

}  // namespace ranktap::collector
