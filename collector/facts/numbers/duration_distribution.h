// Durations of which the median and other quantiles are asked, too.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
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
  void Add(DurationDistribution other) {
    DurationStatistics::Add(other);
    if (values_.empty()) {
      values_ = std::move(other.values_);
    } else {
      values_.insert(values_.end(), other.values_.begin(), other.values_.end());
    }
  }
  // By linear interpolation between neighbours, as pandas and nsys do; `q` from 0 to 1. 0 of none.
  double QuantileNs(double q) const {
    if (values_.empty()) return 0;
    const double place = q * static_cast<double>(values_.size() - 1);
    const double fraction = place - std::floor(place);
    auto rank = static_cast<size_t>(place);
    std::vector<int64_t> values = Around(&rank, fraction == 0 ? rank : rank + 1);
    const auto below = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values.begin(), below, values.end());
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
  static constexpr size_t kMany = 1 << 15;  // below it nth_element of all is as fast
  static constexpr size_t kBuckets = 1024;

  // By magnitude and the four bits below; those below 0 are one.
  static size_t BucketOf(int64_t ns) {
    if (ns < 16) return ns < 0 ? 0 : static_cast<size_t>(ns) + 1;
    const auto value = static_cast<uint64_t>(ns);
    const int magnitude = std::bit_width(value) - 1;
    return static_cast<size_t>((magnitude - 3) * 16) + ((value >> (magnitude - 4)) & 15) + 1;
  }
  // Of many the few that hold those of ranks `*rank` to `last`; *rank becomes the place among them.
  std::vector<int64_t> Around(size_t* rank, size_t last) const {
    if (values_.size() < kMany) return values_;
    std::vector<size_t> counts(kBuckets);
    for (const int64_t ns : values_) ++counts[BucketOf(ns)];
    size_t first_bucket = 0, before = 0;
    while (before + counts[first_bucket] <= *rank) before += counts[first_bucket++];
    size_t last_bucket = first_bucket, end = before + counts[first_bucket];
    while (end <= last) end += counts[++last_bucket];
    std::vector<int64_t> some;
    some.reserve(end - before);
    for (const int64_t ns : values_) {
      const size_t bucket = BucketOf(ns);
      if (first_bucket <= bucket && bucket <= last_bucket) some.push_back(ns);
    }
    *rank -= before;
    return some;
  }

  std::vector<int64_t> values_;
};

}  // namespace ranktap::collector
