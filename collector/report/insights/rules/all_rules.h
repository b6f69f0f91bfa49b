// Each rule by the name of its file. A part of rules.h.
#pragma once

#include "collector/report/insights/rules.h"

namespace ranktap::collector {

Answer FindLaunchBound(const RankFacts& rank);
Answer FindTinyKernels(const RankFacts& rank);

}  // namespace ranktap::collector
