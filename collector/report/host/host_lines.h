// A row for each line of Python in each phase and module, of the agent's samples: the main threads'
// first, the most time of its own first.
#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

Table TabulateHostLines(const Run& run, const ReportOptions& options = {});

}  // namespace ranktap::collector
