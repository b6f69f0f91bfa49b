// Count, sum and extremes of durations: the columns that most summaries share.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ranktap::collector {

struct DurationStatistics {
  int64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = INT64_MAX;
  int64_t max_ns = 0;

  void Add(int64_t ns) {
    ++count;
    total_ns += ns;
    min_ns = std::min(min_ns, ns);
    max_ns = std::max(max_ns, ns);
  }
  void Add(const DurationStatistics& other) {
    count += other.count;
    total_ns += other.total_ns;
    min_ns = std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
  }
  int64_t mean_ns() const { return count == 0 ? 0 : total_ns / count; }
  int64_t shortest_ns() const { return count == 0 ? 0 : min_ns; }
};

}  // namespace ranktap::collector
