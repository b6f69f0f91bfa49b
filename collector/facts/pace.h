// Ranks that do the same again and again: which of them the others leave behind.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

// By number of the instance (a step, the k-th range of a name): when it began.
using Starts = std::map<int64_t, int64_t>;

struct FallingBehind {
  uint32_t trace = 0;
  double ns = 0;  // more behind the first rank with each instance; 1 at least
};

// The trace that falls behind the most: how much later than the first it begins the last instances
// that all have than the first ones, by medians of quarters. `by_trace` on one clock, or each from
// its own first. Nothing is known of fewer than 4 shared instances, and of one trace.
struct Pace {
  bool is_known = false;
  std::optional<FallingBehind> behind;
};
Pace PaceOf(const std::vector<Starts>& by_trace);

// The same of the steps of these traces after warm-up, on the common clock or from each rank's own
// first.
Pace PaceOfSteps(const Run& run, const std::vector<uint32_t>& traces);

}  // namespace ranktap::collector
