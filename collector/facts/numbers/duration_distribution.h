// Durations of which the median and other quantiles are asked, too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collector/facts/numbers/duration_statistics.h"
#include "collector/facts/numbers/magnitude_counts.h"

namespace ranktap::collector {

// 4 bytes for each duration, beside the sums; 8 where one is below 0 or takes longer than 4 s. Not
// safe from several threads.
class DurationDistribution : public DurationStatistics {
 public:
  // So many more will come.
  void Reserve(size_t durations) { short_.reserve(short_.size() + durations); }
  void Add(int64_t ns) {
    DurationStatistics::Add(ns);
    if (all_.empty() && static_cast<uint64_t>(ns) <= UINT32_MAX) {
      short_.push_back(static_cast<uint32_t>(ns));
    } else {
      Widen();
      all_.push_back(ns);
    }
  }
  void Add(DurationDistribution other) {
    if (count == 0) {
      *this = std::move(other);
      return;
    }
    DurationStatistics::Add(other);
    if (!all_.empty() || !other.all_.empty()) {
      Widen(), other.Widen();
      all_.insert(all_.end(), other.all_.begin(), other.all_.end());
    } else {
      short_.insert(short_.end(), other.short_.begin(), other.short_.end());
    }
  }
  // By linear interpolation between neighbours, as pandas and nsys do; `q` from 0 to 1. 0 of none.
  double QuantileNs(double q) const {
    if (count == 0) return 0;
    return all_.empty() ? QuantileOf(short_, q) : QuantileOf(all_, q);
  }
  int64_t median_ns() const { return std::llround(QuantileNs(0.5)); }
  int64_t p95_ns() const { return std::llround(QuantileNs(0.95)); }
  int64_t p99_ns() const { return std::llround(QuantileNs(0.99)); }
  // A sample's deviation (n - 1); 0 for fewer than two durations.
  int64_t stddev_ns() const {
    if (count < 2) return 0;
    const double mean = static_cast<double>(total_ns) / static_cast<double>(count);
    double squares = 0;
    const auto add = [mean, &squares](const auto& durations) {
      for (const int64_t ns : durations) {
        squares += (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean);
      }
    };
    add(short_), add(all_);
    return std::llround(std::sqrt(squares / static_cast<double>(count - 1)));
  }

 private:
  void Widen() {
    all_.insert(all_.end(), short_.begin(), short_.end());
    short_ = {};
  }
  template <typename Duration>
  double QuantileOf(const std::vector<Duration>& durations, double q) const {
    const double place = q * static_cast<double>(durations.size() - 1);
    const double fraction = place - std::floor(place);
    auto rank = static_cast<size_t>(place);
    std::vector<Duration> some = Around(durations, &rank, fraction == 0 ? rank : rank + 1);
    const auto below = some.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(some.begin(), below, some.end());
    if (fraction == 0) return static_cast<double>(*below);
    const int64_t above = *std::min_element(below + 1, some.end());
    return static_cast<double>(*below) + fraction * static_cast<double>(above - int64_t{*below});
  }
  // Of many the few that hold those of ranks `*rank` to `last`; *rank becomes the place among them.
  template <typename Duration>
  std::vector<Duration> Around(const std::vector<Duration>& durations, size_t* rank,
                               size_t last) const {
    if (durations.size() < MagnitudeCounts::kMany) return durations;
    if (counted_ != durations.size()) {
      counts_ = std::make_shared<MagnitudeCounts>();
      for (const int64_t ns : durations) counts_->Count(ns);
      counted_ = durations.size();
    }
    const MagnitudeCounts::Near near = counts_->Around(*rank, last);
    std::vector<Duration> some;
    some.reserve(near.count);
    for (const Duration ns : durations) {
      if (near.Holds(ns)) some.push_back(ns);
    }
    *rank -= near.before;
    return some;
  }

  std::vector<uint32_t> short_;
  std::vector<int64_t> all_;                         // instead, once one is not short
  mutable std::shared_ptr<MagnitudeCounts> counts_;  // of the first `counted_`; never changed
  mutable size_t counted_ = 0;
};

}  // namespace ranktap::collector
