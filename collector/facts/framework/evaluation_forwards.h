// Tells forwards that train from those that only evaluate.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/facts/framework/module_spans.h"

namespace ranktap::collector {

struct StepList;

// For each of `spans` (ModuleSpans of the trace): whether it is an evaluation. A root's forward is
// one where no backward follows that is not another forward's; what runs in it goes with it. All
// false where the hooks saw no backward at all: nothing tells them apart.
std::vector<bool> EvaluationForwards(const Trace& trace, const std::vector<ModuleSpan>& spans);

struct RecordedOperators {
  std::vector<int64_t> training;  // when those begin that are in no evaluation, sorted
  int64_t evaluations = 0;        // forwards of roots that only evaluate, with operators
};
RecordedOperators SplitByEvaluation(const Trace& trace);

// Optimizer to optimizer, a step has the evaluation that came before its own forward. Where it is
// few steps that have one, they begin after it. (An agent that plays has forwards without a
// backward in each step: those are its work.)
void LeaveOutEvaluations(const Trace& trace, StepList* steps);

}  // namespace ranktap::collector
