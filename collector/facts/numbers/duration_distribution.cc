#include "collector/facts/numbers/duration_distribution.h"

#include <algorithm>
#include <utility>

namespace ranktap::collector {

void DurationDistribution::Add(std::span<const int64_t> durations) {
  DurationStatistics sums;
  for (const int64_t ns : durations) sums.Add(ns);
  DurationStatistics::Add(sums);
  Keep(durations);
}

void DurationDistribution::Add(DurationDistribution other) {
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
  Keep(other.short_), Keep(other.all_);
}

double DurationDistribution::QuantileNs(double q) const {
  if (count == 0) return 0;
  const double place = q * static_cast<double>(count - 1);
  const double fraction = place - std::floor(place);
  const Pair pair = FromRank(static_cast<size_t>(place), fraction > 0);
  return static_cast<double>(pair.at) + fraction * static_cast<double>(pair.next - pair.at);
}

Description DurationDistribution::Described() const {
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

double DurationDistribution::DeviationNs() const {
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

template <typename Durations>
void DurationDistribution::Keep(const Durations& durations) {
  if (counts_.empty() && all_.empty() && std::ranges::all_of(durations, [](int64_t ns) {
        return static_cast<uint64_t>(ns) <= UINT32_MAX;
      })) {
    for (const int64_t ns : durations) short_.push_back(static_cast<uint32_t>(ns));
    if (min_ns >= 0 && listed() >= MagnitudeCounts::kMany) StartCounting();
    return;
  }
  for (const int64_t ns : durations) {
    if (static_cast<uint64_t>(ns) < counts_.size()) {
      ++counts_[static_cast<size_t>(ns)];
    } else if (!counts_.empty() && all_.empty() && static_cast<uint64_t>(ns) <= UINT32_MAX) {
      short_.push_back(static_cast<uint32_t>(ns));  // as List() does: most delays come here
    } else {
      List(ns);
    }
  }
}

void DurationDistribution::List(int64_t ns) {
  if (ns < 0) StopCounting();
  if (all_.empty() && static_cast<uint64_t>(ns) <= UINT32_MAX) {
    short_.push_back(static_cast<uint32_t>(ns));
  } else {
    Widen();
    all_.push_back(ns);
  }
  if (counts_.empty() && min_ns >= 0 && listed() >= MagnitudeCounts::kMany) StartCounting();
}

void DurationDistribution::Widen() {
  all_.insert(all_.end(), short_.begin(), short_.end());
  short_ = {};
}

// Those of the list that are short enough; the sums know of none below 0.
void DurationDistribution::StartCounting() {
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
void DurationDistribution::StopCounting() {
  const std::vector<uint32_t> counts = std::exchange(counts_, {});
  if (counts.empty()) return;
  Widen();
  for (size_t ns = 0; ns < counts.size(); ++ns) {
    all_.insert(all_.end(), counts[ns], static_cast<int64_t>(ns));
  }
}

DurationDistribution::Pair DurationDistribution::FromRank(size_t rank, bool wants_next) const {
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
int64_t DurationDistribution::After(size_t ns) const {
  while (++ns < counts_.size()) {
    if (counts_[ns] > 0) return static_cast<int64_t>(ns);
  }
  return all_.empty() ? *std::ranges::min_element(short_) : *std::ranges::min_element(all_);
}

template <typename Duration>
DurationDistribution::Pair DurationDistribution::Listed(const std::vector<Duration>& list,
                                                        size_t rank, bool wants_next) const {
  std::vector<Duration> some = Around(list, &rank, wants_next ? rank + 1 : rank);
  const auto at = some.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(some.begin(), at, some.end());
  return {*at, wants_next ? *std::min_element(at + 1, some.end()) : *at};
}

// Of many the few that hold those of ranks `*rank` to `last`; *rank becomes the place among them.
template <typename Duration>
std::vector<Duration> DurationDistribution::Around(const std::vector<Duration>& list, size_t* rank,
                                                   size_t last) const {
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

}  // namespace ranktap::collector
