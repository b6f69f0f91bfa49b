#pragma once

#include <string>
#include <vector>

#include "collector/facts/numbers/duration_distribution.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RangeRow {
  std::string name;
  std::string domain;  // empty: the default domain; "record_function": a framework's annotation
  DurationDistribution time;
  int64_t gpu_ns = 0;   // of work launched by the same thread while the range was open
  int64_t self_ns = 0;  // without the ranges directly below it on its thread
  int64_t all_ns = 0;   // of all ranges in the table
  int64_t unfinished = 0;
  int64_t ranks = 0;
};

// How long do the program's ranges take? Over all traces, longest total first. Nested ranges count
// in each of their parents.
std::vector<RangeRow> SummarizeRanges(const std::vector<Trace>& traces);

}  // namespace ranktap::collector
