// Durations of which the median and other quantiles are asked, too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collector/facts/numbers/describe.h"
#include "collector/facts/numbers/duration_statistics.h"
#include "collector/facts/numbers/magnitude_counts.h"

namespace ranktap::collector {

// 4 bytes for each duration, beside the sums; 8 where one is below 0 or takes longer than 4 s. Many
// that take less than 65,536 ns are counted by their nanoseconds instead: 256 KiB, whatever their
// number, and no quantile looks at them again. Not safe from several threads.
class DurationDistribution : public DurationStatistics {
 public:
  void Add(int64_t ns) {
    DurationStatistics::Add(ns);
    Keep(ns);
  }
  // The sums of some thousands at once stay in registers: one by one they go through memory.
  void Add(std::span<const int64_t> durations) {
    DurationStatistics sums;
    for (const int64_t ns : durations) sums.Add(ns);
    DurationStatistics::Add(sums);
    for (const int64_t ns : durations) Keep(ns);
  }
  void Add(DurationDistribution other) {
    if (count == 0) {
      *this = std::move(other);
      return;
    }
    DurationStatistics::Add(other);
    if (!other.counts_.empty() && min_ns >= 0) {
      StartCounting();
      for (size_t ns = 0; ns < kCounted; ++ns) counts_[ns] += other.counts_[ns];
    } else {
      other.StopCounting();
    }
    for (const int64_t ns : other.short_) Keep(ns);
    for (const int64_t ns : other.all_) Keep(ns);
  }
  // By linear interpolation between neighbours, as pandas and nsys do; `q` from 0 to 1. 0 of none.
  double QuantileNs(double q) const {
    if (count == 0) return 0;
    const double place = q * static_cast<double>(count - 1);
    const double fraction = place - std::floor(place);
    const Pair pair = FromRank(static_cast<size_t>(place), fraction > 0);
    return static_cast<double>(pair.at) + fraction * static_cast<double>(pair.next - pair.at);
  }
  int64_t median_ns() const { return std::llround(QuantileNs(0.5)); }
  int64_t p95_ns() const { return std::llround(QuantileNs(0.95)); }
  int64_t p99_ns() const { return std::llround(QuantileNs(0.99)); }
  // A sample's deviation (n - 1); 0 for fewer than two durations.
  int64_t stddev_ns() const { return std::llround(DeviationNs()); }
  // As Describe() does of their list.
  Description Described() const {
    if (count == 0) return {};
    return {.count = static_cast<size_t>(count),
            .mean = MeanNs(),
            .deviation = DeviationNs(),
            .min = static_cast<double>(min_ns),
            .quarter = QuantileNs(0.25),
            .median = QuantileNs(0.5),
            .three_quarters = QuantileNs(0.75),
            .max = static_cast<double>(max_ns)};
  }

 private:
  static constexpr size_t kCounted = 1 << 16;  // ns
  // The duration of a rank, and the one after it.
  struct Pair {
    int64_t at = 0, next = 0;
  };

  double MeanNs() const { return static_cast<double>(total_ns) / static_cast<double>(count); }
  double DeviationNs() const {
    if (count < 2) return 0;
    const double mean = MeanNs();
    const auto square = [mean](int64_t ns) {
      return (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean);
    };
    double squares = 0;
    for (const int64_t ns : short_) squares += square(ns);
    for (const int64_t ns : all_) squares += square(ns);
    for (size_t ns = 0; ns < counts_.size(); ++ns) {
      if (counts_[ns] > 0) squares += counts_[ns] * square(static_cast<int64_t>(ns));
    }
    return std::sqrt(squares / static_cast<double>(count - 1));
  }

  void Keep(int64_t ns) {
    if (static_cast<uint64_t>(ns) < counts_.size()) {
      ++counts_[static_cast<size_t>(ns)];
    } else {
      List(ns);
    }
  }
  void List(int64_t ns) {
    if (ns < 0) StopCounting();
    if (all_.empty() && static_cast<uint64_t>(ns) <= UINT32_MAX) {
      short_.push_back(static_cast<uint32_t>(ns));
    } else {
      Widen();
      all_.push_back(ns);
    }
    if (counts_.empty() && min_ns >= 0 && listed() >= MagnitudeCounts::kMany) StartCounting();
  }
  size_t listed() const { return short_.size() + all_.size(); }
  void Widen() {
    all_.insert(all_.end(), short_.begin(), short_.end());
    short_ = {};
  }
  // Those of the list that are short enough; the sums know of none below 0.
  void StartCounting() {
    if (!counts_.empty()) return;
    counts_.resize(kCounted);
    const auto count_short = [this](int64_t ns) {
      const bool is_short = static_cast<size_t>(ns) < kCounted;
      if (is_short) ++counts_[static_cast<size_t>(ns)];
      return is_short;
    };
    std::erase_if(short_, count_short), std::erase_if(all_, count_short);
  }
  // Below 0 there is no counting: the counted ones come before all others.
  void StopCounting() {
    const std::vector<uint32_t> counts = std::exchange(counts_, {});
    if (counts.empty()) return;
    Widen();
    for (size_t ns = 0; ns < counts.size(); ++ns) {
      all_.insert(all_.end(), counts[ns], static_cast<int64_t>(ns));
    }
  }

  Pair FromRank(size_t rank, bool wants_next) const {
    for (size_t ns = 0; ns < counts_.size(); ++ns) {
      if (rank >= counts_[ns]) {
        rank -= counts_[ns];
        continue;
      }
      const auto at = static_cast<int64_t>(ns);
      return {at, wants_next && rank + 1 == counts_[ns] ? After(ns) : at};
    }
    return all_.empty() ? Listed(short_, rank, wants_next) : Listed(all_, rank, wants_next);
  }
  // The next longer than a counted one; there is one.
  int64_t After(size_t ns) const {
    while (++ns < counts_.size()) {
      if (counts_[ns] > 0) return static_cast<int64_t>(ns);
    }
    return all_.empty() ? *std::ranges::min_element(short_) : *std::ranges::min_element(all_);
  }
  template <typename Duration>
  Pair Listed(const std::vector<Duration>& list, size_t rank, bool wants_next) const {
    std::vector<Duration> some = Around(list, &rank, wants_next ? rank + 1 : rank);
    const auto at = some.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(some.begin(), at, some.end());
    return {*at, wants_next ? *std::min_element(at + 1, some.end()) : *at};
  }
  // Of many the few that hold those of ranks `*rank` to `last`; *rank becomes the place among them.
  template <typename Duration>
  std::vector<Duration> Around(const std::vector<Duration>& list, size_t* rank, size_t last) const {
    if (list.size() < MagnitudeCounts::kMany) return list;
    if (magnitudes_of_ != list.size()) {
      magnitudes_ = std::make_shared<MagnitudeCounts>();
      for (const int64_t ns : list) magnitudes_->Count(ns);
      magnitudes_of_ = list.size();
    }
    const MagnitudeCounts::Near near = magnitudes_->Around(*rank, last);
    std::vector<Duration> some;
    some.reserve(near.count);
    for (const Duration ns : list) {
      if (near.Holds(ns)) some.push_back(ns);
    }
    *rank -= near.before;
    return some;
  }

  std::vector<uint32_t> short_;
  std::vector<int64_t> all_;      // instead, once one is not short
  std::vector<uint32_t> counts_;  // by ns: those that are in no list; empty: of few
  mutable std::shared_ptr<MagnitudeCounts> magnitudes_;  // of the list; never changed
  mutable size_t magnitudes_of_ = 0;                     // its length then
};

}  // namespace ranktap::collector
