// Durations of which the median and other quantiles are asked, too.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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
    if (static_cast<uint64_t>(ns) < counts_.size()) {
      ++counts_[static_cast<size_t>(ns)];
    } else {
      List(ns);
    }
  }
  // The sums of some thousands at once stay in registers: one by one they go through memory.
  void Add(std::span<const int64_t> durations);
  void Add(DurationDistribution other);
  // By linear interpolation between neighbours, as pandas and nsys do; `q` from 0 to 1. 0 of none.
  double QuantileNs(double q) const;
  int64_t median_ns() const { return std::llround(QuantileNs(0.5)); }
  int64_t p95_ns() const { return std::llround(QuantileNs(0.95)); }
  int64_t p99_ns() const { return std::llround(QuantileNs(0.99)); }
  // A sample's deviation (n - 1); 0 for fewer than two durations.
  int64_t stddev_ns() const { return std::llround(DeviationNs()); }
  // As Describe() does of their list.
  Description Described() const;

 private:
  static constexpr size_t kCounted = 1 << 16;  // ns
  // The duration of a rank, and the one after it.
  struct Pair {
    int64_t at = 0, next = 0;
  };

  double MeanNs() const { return static_cast<double>(total_ns) / static_cast<double>(count); }
  double DeviationNs() const;
  // Those that the sums know already.
  template <typename Durations>
  void Keep(const Durations& durations);
  void List(int64_t ns);
  size_t listed() const { return short_.size() + all_.size(); }
  void Widen();
  void StartCounting();
  void StopCounting();
  Pair FromRank(size_t rank, bool wants_next) const;
  int64_t After(size_t ns) const;
  template <typename Duration>
  Pair Listed(const std::vector<Duration>& list, size_t rank, bool wants_next) const;
  template <typename Duration>
  std::vector<Duration> Around(const std::vector<Duration>& list, size_t* rank, size_t last) const;

  std::vector<uint32_t> short_;
  std::vector<int64_t> all_;      // instead, once one is not short
  std::vector<uint32_t> counts_;  // by ns: those that are in no list; empty: of few
  mutable std::shared_ptr<MagnitudeCounts> magnitudes_;  // of the list; never changed
  mutable size_t magnitudes_of_ = 0;                     // its length then
};

}  // namespace ranktap::collector
