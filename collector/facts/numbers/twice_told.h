// The description (describe.h) of whole numbers that can be walked again: none of them is kept.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collector/facts/numbers/describe.h"
#include "collector/facts/numbers/magnitude_counts.h"

namespace ranktap::collector {

// Add() every number, then AddAgain() every number in the same order, then Take(). Some thousands
// at once: one by one the sums go through memory, and *launches* took 0.36 s instead of 0.26.
class TwiceTold {
 public:
  // No more than `most` numbers will come.
  explicit TwiceTold(size_t most) : few_(most < MagnitudeCounts::kMany) {
    if (few_) values_.reserve(most);
  }
  void Add(std::span<const int64_t> numbers) {
    if (few_) {
      values_.insert(values_.end(), numbers.begin(), numbers.end());
      return;
    }
    double sum = sum_;
    int64_t least = least_, most = most_;
    for (const int64_t number : numbers) {
      sum += static_cast<double>(number);
      least = std::min(least, number);
      most = std::max(most, number);
      counts_.Count(number);
    }
    of_.count += numbers.size();
    sum_ = sum, least_ = least, most_ = most;
  }
  void AddAgain(std::span<const int64_t> numbers) {
    if (few_ || numbers.empty()) return;
    if (!turned_) Turn();
    double squares = squares_;
    const double mean = of_.mean;
    for (const int64_t number : numbers) {
      const double from_mean = static_cast<double>(number) - mean;
      squares += from_mean * from_mean;
    }
    squares_ = squares;
    for (Place& place : places_) {
      if (!place.wants) continue;
      const MagnitudeCounts::Near near = place.near;
      for (const int64_t number : numbers) {
        if (near.Holds(number)) place.numbers.push_back(number);
      }
    }
  }
  Description Take() {
    if (few_) return Describe(std::move(values_));
    if (of_.count == 0) return of_;
    of_.deviation = of_.count < 2 ? 0 : std::sqrt(squares_ / (static_cast<double>(of_.count) - 1));
    of_.min = static_cast<double>(least_);
    of_.max = static_cast<double>(most_);
    of_.quarter = places_[0].Quantile();
    of_.median = places_[1].Quantile();
    of_.three_quarters = places_[2].Quantile();
    return of_;
  }

 private:
  // What is near a quantile.
  struct Place {
    double q = 0, fraction = 0;
    size_t low = 0, high = 0;  // ranks of the numbers below and above it, among those near
    MagnitudeCounts::Near near;
    bool wants = false;  // those near are not all the same number
    std::vector<int64_t> numbers;

    double Quantile() {
      if (!wants) return static_cast<double>(near.least);
      const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(low);
      std::nth_element(numbers.begin(), at, numbers.end());
      const auto below = static_cast<double>(*at);
      if (low == high) return below;
      const auto above = static_cast<double>(*std::min_element(std::next(at), numbers.end()));
      return below + (above - below) * fraction;
    }
  };

  void Turn() {
    turned_ = true;
    of_.mean = sum_ / static_cast<double>(of_.count);
    for (Place& place : places_) {
      const double at = place.q * static_cast<double>(of_.count - 1);
      const auto low = static_cast<size_t>(at);
      const size_t high = std::min(low + 1, of_.count - 1);
      place.fraction = at - static_cast<double>(low);
      place.near = counts_.Around(low, high);
      place.low = low - place.near.before;
      place.high = high - place.near.before;
      place.wants = place.near.least != place.near.most;
      if (place.wants) place.numbers.reserve(place.near.count);
    }
  }

  const bool few_;
  std::vector<double> values_;  // of few
  MagnitudeCounts counts_;
  Description of_;
  double sum_ = 0, squares_ = 0;
  int64_t least_ = INT64_MAX, most_ = INT64_MIN;
  bool turned_ = false;  // it is told again
  std::array<Place, 3> places_ = {Place{.q = 0.25}, Place{.q = 0.5}, Place{.q = 0.75}};
};

}  // namespace ranktap::collector
