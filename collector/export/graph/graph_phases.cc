#include "collector/export/graph/graph_phases.h"

#include <algorithm>

#include "collector/facts/host_activity.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

bool IsIn(const std::vector<Interval>& intervals, int64_t time) {
  const auto after = std::ranges::upper_bound(intervals, time, {}, &Interval::first);
  return after != intervals.begin() && time < std::prev(after)->second;
}

}  // namespace

std::vector<std::string_view> PhasesOfOperators(const Trace& trace) {
  const std::vector<Interval> backward = PhaseIntervals(trace, proto::kBackwardPhase);
  const std::vector<Interval> optimizer = PhaseIntervals(trace, proto::kOptimizerPhase);
  const std::vector<Interval> forward = ForwardPasses(trace);
  const Operators& ops = trace.operators;
  std::vector<std::string_view> phases(ops.size());
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const uint32_t parent = ops.parent[op];
    if (parent != kNone && !phases[parent].empty()) {
      phases[op] = phases[parent];
      continue;
    }
    const std::string_view name = trace.dictionary.String(ops.name[op]);
    const int64_t start = ops.start[op];
    if (name.starts_with("Optimizer.") || IsIn(optimizer, start)) {
      phases[op] = "optimizer";
    } else if (ops.scope.At(op) == kBackwardScope ||
               name.starts_with("autograd::engine::evaluate_function") || IsIn(backward, start)) {
      phases[op] = "backward";
    } else if ((ops.sequence.At(op) != 0 && !name.starts_with("c10d::")) ||
               name == "DistributedDataParallel.forward" || IsIn(forward, start)) {
      phases[op] = "forward";
    }
  }
  return phases;
}

}  // namespace ranktap::collector
