// The cycles of a schedule (run --schedule): the steps that were recorded operator by operator.
#pragma once

#include <vector>

#include "collector/facts/numbers/interval_union.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Steps that follow each other and have operators, on the first rank that has any: from the first
// one's begin to the last one's end on any rank, nanoseconds of CLOCK_REALTIME, in order.
std::vector<Interval> RecordedCycles(const Run& run);

}  // namespace ranktap::collector
