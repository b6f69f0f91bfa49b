// The cycles of a schedule (run --schedule): the steps that were recorded operator by operator.
#pragma once

#include <vector>

#include "collector/facts/numbers/interval_union.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Steps that follow each other and have operators, on the first rank that has any. From the first
// one's begin to the last one's end, nanoseconds of CLOCK_REALTIME: a rank that is ahead begins its
// next step while another is in its last.
struct RecordedCycle {
  Interval of_all;                 // from the first rank's begin to the last one's end
  std::vector<Interval> by_trace;  // empty windows where a rank lacks the steps
};
std::vector<RecordedCycle> RecordedCycles(const Run& run);  // in order

}  // namespace ranktap::collector
