#pragma once

#include <string>
#include <vector>

#include "collector/analysis/numbers/duration_distribution.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct KernelRow {
  std::string name;  // demangled
  DurationDistribution time;
  int64_t untimed = 0;  // records that CUPTI delivered without times, not in `time`
  int64_t ranks = 0;    // traces that ran it
};

// Where does GPU time go? Over all traces; longest total first, equal totals by name, so that two
// reports of one run are the same byte by byte.
std::vector<KernelRow> SummarizeKernels(const std::vector<Trace>& traces);

}  // namespace ranktap::collector
