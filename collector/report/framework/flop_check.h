// Our formulas against PyTorch's own counter, in the step of `ranktap run --flop-check`.
#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// A row for each operator and shapes of its inputs that either counts, those that disagree first.
// Ours are FlopRule::kCounter of the operators recorded meanwhile, an operator inside of a counted
// one not again. Of each rank that was checked.
Table TabulateFlopCheck(const Run& run);

}  // namespace ranktap::collector
