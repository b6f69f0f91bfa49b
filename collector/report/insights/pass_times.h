// When the host was in which part of a training step, whoever recorded it.
#pragma once

#include <vector>

#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Calls of optimizers' step(): the agent's phases, else what torch.profiler calls them. Merged.
std::vector<Interval> OptimizerSteps(const Trace& trace);

// Forward and backward passes: modules, autograd's nodes, and ranges and operators that are named
// so. Merged.
std::vector<Interval> ModelPasses(const Trace& trace);

// From each optimizer's end until the next pass of the model, or the next optimizer, begins.
std::vector<Interval> AfterOptimizerSteps(const Trace& trace);

}  // namespace ranktap::collector
