// The clocks of ranks against each other, from the collectives that they took part in: no network
// and no synchronised clocks are needed. Two all-reduces, in ns, each by the clock of its rank:
//
//   rank 0    100..160      300..340
//   rank 1   1130..1160    1305..1340    begins and ends
//   ends       +1000         +1000       offset_ns: the median, 1000; residual_ns 0
//   low         +970          +965       rank 1's begin less rank 0's end: the largest, 970
//   high       +1060         +1040       rank 1's end less rank 0's begin: the smallest, 1040
#pragma once

#include <cstdint>
#include <vector>

#include "collector/facts/collectives.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What the clock of a rank shows more than that of `reference` (an index into Run::traces):
// offset + drift_ppm / 1e6 x (reference's time - at).
//
// A collective ends on all members at one moment, so each gives the difference of their ends; the
// offset is the median, the drift the Theil-Sen slope of medians over windows. Nobody ends before
// all have begun: with the drift taken off, every offset outside [low, high] is impossible.
struct ClockDifference {
  uint32_t trace = 0, reference = 0;
  bool known = false;
  bool through_others = false;  // no collective has both; joined over ranks that share some
  size_t collectives = 0;       // 0 for the reference itself
  int64_t at = 0;               // time of the reference
  double offset_ns = 0, drift_ppm = 0;
  double residual_ns = 0;  // interquartile range of what is left; of the worst link
  double low_ns = 0, high_ns = 0;
};

// One for each trace; the reference is the first trace.
std::vector<ClockDifference> AlignClocks(const Run& run,
                                         const std::vector<CollectiveRun>& collectives);

}  // namespace ranktap::collector
