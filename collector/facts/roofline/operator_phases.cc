#include "collector/facts/roofline/operator_phases.h"

#include <algorithm>
#include <array>

#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// As our hook or torch.profiler tells of them.
std::vector<Interval> OptimizerSteps(const Trace& trace) {
  std::vector<Interval> steps;
  for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
    if (trace.dictionary.String(trace.ranges.name[row]) == proto::kOptimizerPhase) {
      steps.emplace_back(trace.ranges.start[row], trace.ranges.end[row]);
    }
  }
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (static_cast<OperatorKind>(ops.kind[i]) == OperatorKind::kAnnotation &&
        trace.dictionary.String(ops.name[i]).starts_with("Optimizer.step#")) {
      steps.emplace_back(ops.start[i], ops.end[i]);
    }
  }
  return Merged(std::move(steps));
}

bool Covers(const std::vector<Interval>& sorted, int64_t time) {
  const auto after = std::upper_bound(sorted.begin(), sorted.end(), Interval{time, INT64_MAX});
  return after != sorted.begin() && std::prev(after)->second > time;
}

// Files of torch.profiler do not say the scope.
bool IsBackwardNode(const Trace& trace, uint32_t op) {
  const Operators& ops = trace.operators;
  return ops.scope.At(op) == 1 ||
         trace.dictionary.String(ops.name[op]).starts_with("autograd::engine::evaluate_function");
}

}  // namespace

std::string_view NameOf(RooflinePhase phase) {
  constexpr std::array<std::string_view, 5> kNames = {"forward", "backward", "recompute",
                                                      "optimizer", "other"};
  return kNames[static_cast<size_t>(phase)];
}

std::vector<RooflinePhase> OperatorPhases(const Trace& trace, const std::vector<OpPlace>& places) {
  const Operators& ops = trace.operators;
  const std::vector<Interval> optimizer = OptimizerSteps(trace);
  std::vector<RooflinePhase> phases(ops.size(), RooflinePhase::kForward);
  std::vector<bool> in_node(ops.size());
  for (uint32_t i = 0; i < ops.size(); ++i) {
    const uint32_t parent = ops.parent[i];
    in_node[i] = IsBackwardNode(trace, i) || (parent != kNone && in_node[parent]);
    if (places[i].pass == Pass::kRecompute) {
      phases[i] = RooflinePhase::kRecompute;
    } else if (places[i].pass == Pass::kBackward || in_node[i]) {
      phases[i] = RooflinePhase::kBackward;
    } else if (places[i].module == 0 && Covers(optimizer, ops.start[i])) {
      phases[i] = RooflinePhase::kOptimizer;
    } else if (places[i].in_no_pass) {
      phases[i] = RooflinePhase::kOther;
    }
  }
  return phases;
}

}  // namespace ranktap::collector
