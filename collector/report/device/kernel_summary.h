#pragma once

#include <string>
#include <vector>

#include "collector/facts/numbers/duration_distribution.h"
#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct KernelRow {
  std::string name;
  std::string grid, block;  // "128x1x1"; empty where they do not group, or are not known
  DurationDistribution time;
  int64_t untimed = 0;  // records that CUPTI delivered without times, not in `time`
  int64_t ranks = 0;    // traces that ran it
};

// Where does GPU time go? Over all traces; longest total first, equal totals by name, so that two
// reports of one run are the same byte by byte. It heeds the options of the report *kernels*.
std::vector<KernelRow> SummarizeKernels(const std::vector<Trace>& traces,
                                        const ReportOptions& options = {});

}  // namespace ranktap::collector
