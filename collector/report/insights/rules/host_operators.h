// What the rules of the roofline say of a job on the processor.
#pragma once

#include <string_view>

#include "collector/report/insights/insight.h"
#include "collector/report/insights/rank_facts.h"

namespace ranktap::collector {

// The rank worked on no device, and somebody calibrated its host.
bool HasHostRoofs(const RankFacts& rank);

Answer FindHostProductsBelowRoof(const RankFacts& rank);
Answer FindHostMemoryBound(const RankFacts& rank);

// An element-wise operator, or one that others could be fused with: no copy, join or softmax, which
// has a rule of its own.
bool IsFusible(std::string_view name);

}  // namespace ranktap::collector
