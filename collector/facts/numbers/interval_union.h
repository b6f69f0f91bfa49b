// How long at least one of many intervals was open.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace ranktap::collector {

using Interval = std::pair<int64_t, int64_t>;  // [first, second)

inline int64_t UnionLength(std::vector<Interval> intervals) {
  if (!std::is_sorted(intervals.begin(), intervals.end())) {
    std::sort(intervals.begin(), intervals.end());
  }
  int64_t length = 0;
  int64_t reached = INT64_MIN;
  for (const auto& [start, end] : intervals) {
    if (end <= reached) continue;
    length += end - std::max(start, reached);
    reached = end;
  }
  return length;
}

}  // namespace ranktap::collector
