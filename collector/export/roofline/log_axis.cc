#include "collector/export/roofline/log_axis.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace ranktap::collector {
namespace {

// Minor lines of more decades than these are one grey.
constexpr int kMostWithMinor = 7;

}  // namespace

LogAxis::LogAxis(std::span<const double> values, int most, double first_at, double last_at)
    : first_at_(first_at), last_at_(last_at) {
  double smallest = HUGE_VAL, largest = 0;
  for (const double value : values) {
    if (!std::isfinite(value) || value <= 0) continue;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  if (largest <= 0) return;
  // A value on the edge would lie half outside.
  to_ = static_cast<int>(std::ceil(std::log10(largest * 1.2)));
  from_ = static_cast<int>(std::floor(std::log10(smallest / 1.2)));
  from_ = std::max(std::min(from_, to_ - 1), to_ - most);
}

double LogAxis::first() const { return std::pow(10, from_); }
double LogAxis::last() const { return std::pow(10, to_); }

bool LogAxis::Holds(double value) const {
  return std::isfinite(value) && value >= first() && value <= last();
}

double LogAxis::At(double value) const {
  return first_at_ + (std::log10(value) - from_) / (to_ - from_) * (last_at_ - first_at_);
}

std::vector<LogAxis::Mark> LogAxis::Marks() const {
  std::vector<Mark> marks;
  for (int exponent = from_; exponent <= to_; ++exponent) {
    const double decade = std::pow(10, exponent);
    marks.push_back({decade, At(decade), true});
    if (exponent == to_ || to_ - from_ > kMostWithMinor) continue;
    for (int times = 2; times <= 9; ++times) {
      marks.push_back({times * decade, At(times * decade), false});
    }
  }
  return marks;
}

std::string WithPrefix(double value) {
  static constexpr struct {
    double unit;
    const char* prefix;
  } kPrefixes[] = {{1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  for (const auto& [unit, prefix] : kPrefixes) {
    // 999.6e9 is "1 T": three digits round upwards.
    if (value >= unit * 0.9995) return fmt::format("{:.3g}{}", value / unit, prefix);
  }
  return value > 0 ? fmt::format("{:.3g} ", value) : "0 ";
}

}  // namespace ranktap::collector
