// Durations of which the median and other quantiles are asked, too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/facts/numbers/duration_statistics.h"

namespace ranktap::collector {

// 8 bytes for each duration, beside the sums.
class DurationDistribution : public DurationStatistics {
 public:
  void Add(int64_t ns) {
    DurationStatistics::Add(ns);
    values_.push_back(ns);
  }
  void Add(const DurationDistribution& other) {
    DurationStatistics::Add(other);
    values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  }
  // By linear interpolation between neighbours, as pandas and nsys do; `q` from 0 to 1. 0 of none.
  double QuantileNs(double q) const {
    if (values_.empty()) return 0;
    std::vector<int64_t> values = values_;
    const double place = q * static_cast<double>(values.size() - 1);
    const auto below = values.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(values.begin(), below, values.end());
    const double fraction = place - std::floor(place);
    if (fraction == 0) return static_cast<double>(*below);
    const int64_t above = *std::min_element(below + 1, values.end());
    return static_cast<double>(*below) + fraction * static_cast<double>(above - *below);
  }
  int64_t median_ns() const { return std::llround(QuantileNs(0.5)); }
  int64_t p95_ns() const { return std::llround(QuantileNs(0.95)); }
  int64_t p99_ns() const { return std::llround(QuantileNs(0.99)); }
  // A sample's deviation (n - 1); 0 for fewer than two durations.
  int64_t stddev_ns() const {
    if (values_.size() < 2) return 0;
    const double mean = static_cast<double>(total_ns) / static_cast<double>(count);
    double squares = 0;
    for (const int64_t ns : values_) {
      squares += (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean);
    }
    return std::llround(std::sqrt(squares / static_cast<double>(count - 1)));
  }

 private:
  std::vector<int64_t> values_;
};

}  // namespace ranktap::collector
