// Python threads as stacks with weights, of the agent's samples: a part of weighted_stacks.h.
#pragma once

#include "collector/export/weighted_stacks.h"

namespace ranktap::collector {

// Below `root` and "main thread" or "thread N". What lies in the window alone counts.
void AddSampledStacks(const Trace& trace, const ExportOptions& options, uint32_t root,
                      WeightedStacks* to);

}  // namespace ranktap::collector
