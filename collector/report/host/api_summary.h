#pragma once

#include <string>
#include <vector>

#include "collector/facts/numbers/duration_distribution.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct ApiRow {
  std::string name;
  std::string domain;  // "runtime" or "driver"
  DurationDistribution time;
  int64_t all_ns = 0;  // of all calls in the table
  int64_t errors = 0;  // other than "not ready", which queries return by design
};

// Where does the host spend its time in CUDA calls? Over all traces and threads, longest total
// first.
std::vector<ApiRow> SummarizeApis(const std::vector<Trace>& traces);

}  // namespace ranktap::collector
