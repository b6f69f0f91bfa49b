#pragma once

#include <string>
#include <vector>

#include "collector/facts/numbers/duration_statistics.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct ModuleRow {
  std::string name;  // Root.path.of.module
  // Those that train, or all where nothing tells; evaluation: the others (evaluation_forwards.h).
  DurationStatistics forward, evaluation;
  int64_t self_ns = 0;  // of the training forwards, without the modules called in them
  // Per step: of the rank that the others wait for, over the median of the others.
  int64_t excess_ns = 0;
  int64_t gpu_ns = 0;  // of work launched in the forwards
  int64_t ranks = 0;
  int64_t first = 0;  // start of the first forward
  // In one step of one rank, with the modules called in it; zero where no operators were recorded.
  int64_t forward_flops = 0, backward_flops = 0, recompute_flops = 0;
  // The same forward by DeepSpeed's rule (FlopRule::kDeepSpeed).
  int64_t deepspeed_flops = 0, deepspeed_macs = 0, deepspeed_old_macs = 0;
};

// Where does the forward pass go, module by module? Over all traces, parents before children, in
// the order in which they first ran.
std::vector<ModuleRow> SummarizeModules(const std::vector<Trace>& traces);

}  // namespace ranktap::collector
