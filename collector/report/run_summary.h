#pragma once

#include <string>
#include <vector>

#include "collector/report/capture/rank_summary.h"
#include "collector/report/device/kernel_summary.h"
#include "collector/report/host/range_summary.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What `ranktap run` says when the command has ended.
struct RunSummary {
  std::string verdict;  // the sentence; empty: none
  std::vector<RankRow> ranks;
  std::vector<KernelRow> kernels;  // longest first
  int64_t kernel_ns = 0;           // of all kernels
  std::vector<RangeRow> ranges;    // longest first
  int64_t cost_cpu_ns = 0, cost_callback_ns = 0;
  uint64_t lost = 0;
  int64_t launches_without_kernel = 0;
  bool simulated = false;
  std::vector<std::string> notes;  // of the agents, each once
};

RunSummary SummarizeRun(const Run& run);

}  // namespace ranktap::collector
