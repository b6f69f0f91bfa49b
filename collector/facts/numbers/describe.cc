#include "collector/facts/numbers/describe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace ranktap::collector {

double Quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

namespace {

// Quantile() of values in any order; puts them in another.
double Select(std::vector<double>* values, double q) {
  const double at = q * static_cast<double>(values->size() - 1);
  const auto low = values->begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(values->begin(), low, values->end());
  if (std::next(low) == values->end()) return *low;
  const double high = *std::min_element(std::next(low), values->end());
  return *low + (high - *low) * (at - std::floor(at));
}

// Below this nth_element is as fast.
constexpr size_t kMany = 1 << 15;

// Quantiles of many values: they are counted by sign, exponent and four bits of the mantissa first,
// which keep their order, so that only those around a quantile are looked at again.
class Buckets {
 public:
  Buckets(const std::vector<double>& values, std::span<const double> quantiles)
      : counts_(1 << 16, 0) {
    for (const double value : values) ++counts_[BucketOf(value)];
    for (const double q : quantiles) Find(q, values.size());
    for (const double value : values) {
      if (wanted_[BucketOf(value)]) Keep(value);
    }
  }
  double operator[](size_t quantile) {
    Place& place = places_[quantile];
    const auto low = place.values.begin() + static_cast<std::ptrdiff_t>(place.low);
    std::nth_element(place.values.begin(), low, place.values.end());
    if (std::next(low) == place.values.end()) return *low;
    const double high = *std::min_element(std::next(low), place.values.end());
    return *low + (high - *low) * place.fraction;
  }

 private:
  // The buckets that hold the values below and above a quantile.
  struct Place {
    size_t first = 0, last = 0;
    size_t low = 0;  // rank of the value below it within them
    double fraction = 0;
    std::vector<double> values;
  };

  void Find(double q, size_t size) {
    const double at = q * static_cast<double>(size - 1);
    const auto low = static_cast<size_t>(at);
    const size_t high = std::min(low + 1, size - 1);
    Place& place = places_.emplace_back();
    size_t before = 0;
    while (before + counts_[place.first] <= low) before += counts_[place.first++];
    place.last = place.first;
    for (size_t end = before + counts_[place.first]; end <= high;) end += counts_[++place.last];
    place.low = low - before;
    place.fraction = at - static_cast<double>(low);
    for (size_t i = place.first; i <= place.last; ++i) wanted_[i] = true;
  }
  void Keep(double value) {
    const size_t bucket = BucketOf(value);
    for (Place& place : places_) {
      if (place.first <= bucket && bucket <= place.last) place.values.push_back(value);
    }
  }
  static size_t BucketOf(double value) {
    auto bits = std::bit_cast<uint64_t>(value + 0.0);  // -0 is 0
    bits ^= (bits >> 63) != 0 ? ~uint64_t{0} : uint64_t{1} << 63;
    return bits >> 48;
  }

  std::vector<uint32_t> counts_;
  std::array<bool, 1 << 16> wanted_{};
  std::vector<Place> places_;
};

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  return Select(&values, 0.5);
}

Description Describe(std::vector<double> values) {
  Description description;
  description.count = values.size();
  if (values.empty()) return description;
  const auto count = static_cast<double>(values.size());
  description.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) {
    squares += (value - description.mean) * (value - description.mean);
  }
  description.deviation = values.size() < 2 ? 0 : std::sqrt(squares / (count - 1));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  description.min = *least;
  description.max = *most;
  if (values.size() >= kMany) {
    constexpr std::array<double, 3> kQuantiles = {0.25, 0.5, 0.75};
    Buckets buckets(values, kQuantiles);
    description.quarter = buckets[0];
    description.median = buckets[1];
    description.three_quarters = buckets[2];
    return description;
  }
  description.median = Select(&values, 0.5);
  description.quarter = Select(&values, 0.25);
  description.three_quarters = Select(&values, 0.75);
  return description;
}

}  // namespace ranktap::collector
