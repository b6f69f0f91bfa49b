#include "collector/report/insights/pass_times.h"

#include <algorithm>

#include "collector/facts/framework/module_spans.h"
#include "collector/facts/host_activity.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

bool NamesPass(std::string_view name) {
  return name.starts_with("autograd::engine::evaluate_function") ||
         name.find("forward") != name.npos || name.find("backward") != name.npos;
}

template <typename Named>
void AddPasses(const Trace& trace, const Named& table, std::vector<Interval>* set) {
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string_view name = trace.dictionary.String(table.name[i]);
    // "aten::_flash_attention_forward" is a part of one at most.
    if (!name.starts_with("aten::") && NamesPass(name)) {
      set->emplace_back(table.start[i], table.end[i]);
    }
  }
}

}  // namespace

std::vector<Interval> OptimizerSteps(const Trace& trace) {
  std::vector<Interval> steps = PhaseIntervals(trace, proto::kOptimizerPhase);
  if (steps.empty()) steps = OperatorsNamed(trace, "Optimizer.step#");
  return steps;
}

std::vector<Interval> ModelPasses(const Trace& trace) {
  std::vector<Interval> set = PhaseIntervals(trace, proto::kBackwardPhase);
  for (const ModuleSpan& span : ModuleSpans(trace)) set.emplace_back(span.start, span.end);
  AddPasses(trace, trace.operators, &set);
  AddPasses(trace, trace.ranges, &set);
  for (size_t i = 0; i < trace.operators.size(); ++i) {
    if (trace.operators.scope.At(i) != kBackwardScope) continue;
    set.emplace_back(trace.operators.start[i], trace.operators.end[i]);
  }
  return Merged(std::move(set));
}

std::vector<Interval> AfterOptimizerSteps(const Trace& trace) {
  const std::vector<Interval> steps = OptimizerSteps(trace);
  const std::vector<Interval> passes = ModelPasses(trace);
  if (passes.empty()) return {};  // nobody knows where the next one begins
  std::vector<Interval> after;
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t end = steps[i].second;
    const auto pass = std::ranges::lower_bound(passes, end, {}, &Interval::first);
    int64_t until = pass == passes.end() ? trace.last_ns : pass->first;
    if (i + 1 < steps.size()) until = std::min(until, steps[i + 1].first);
    if (until > end) after.emplace_back(end, until);
  }
  return after;
}

}  // namespace ranktap::collector
