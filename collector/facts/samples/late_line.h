// The line of the program at which a late rank spends more time than the others do, or a long step
// more than the other steps.
#pragma once

#include <cstdint>
#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

struct LateLine {
  std::string text;       // HostSamples::Describe; empty: no line stands out, or nobody looked
  int64_t excess_ns = 0;  // per step, over the median of the others
};

// Of the rank's main thread against those of other ranks, in their counted steps. `least_ns`: what
// the line must have more per step to be named.
LateLine FindLateLine(const Run& run, uint32_t trace, int64_t least_ns);

// Of some steps of a trace against others of it (OnlySteps).
LateLine LineOfLongSteps(const Trace& trace, const RankWaterfall& longer,
                         const RankWaterfall& shorter, int64_t least_ns);

}  // namespace ranktap::collector
