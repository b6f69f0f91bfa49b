#include "collector/report/gate/welch.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ranktap::collector {
namespace {

// The continued fraction of the incomplete beta function, by Lentz's method.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kExact = 1e-15;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m < 1000; ++m) {
    const double even = m * (b - m) * x / ((a - 1 + 2 * m) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 1 + 2 * m));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    result *= d * c;
    if (std::abs(d * c - 1) < kExact) break;
  }
  return result;
}

double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * BetaFraction(a, b, x) / a
                                   : 1 - front * BetaFraction(b, a, 1 - x) / b;
}

double MeanOfValues(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double VarianceOf(const std::vector<double>& values) {
  const double mean = MeanOfValues(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

}  // namespace

double StudentBelow(double t, double freedom) {
  const double tail = IncompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
  return t > 0 ? 1 - tail : tail;
}

double StudentQuantile(double share, double freedom) {
  double low = -1, high = 1;
  while (StudentBelow(low, freedom) > share) low *= 2;
  while (StudentBelow(high, freedom) < share) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-11 * std::max(1.0, std::abs(low)); ++i) {
    const double middle = (low + high) / 2;
    (StudentBelow(middle, freedom) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

double MeanDifference::Low(double confidence) const {
  return error == 0 ? difference : difference - error * StudentQuantile(confidence, freedom);
}

double MeanDifference::High(double confidence) const {
  return error == 0 ? difference : difference + error * StudentQuantile(confidence, freedom);
}

double MeanDifference::PValue() const {
  if (error == 0) return difference == 0 ? 1 : 0;
  return 2 * StudentBelow(-std::abs(difference / error), freedom);
}

std::optional<MeanDifference> CompareMeans(const std::vector<double>& a,
                                           const std::vector<double>& b) {
  if (a.empty() || b.empty() || (a.size() < 2 && b.size() < 2)) return std::nullopt;
  const auto of_a = static_cast<double>(a.size()), of_b = static_cast<double>(b.size());
  MeanDifference result{.difference = MeanOfValues(b) - MeanOfValues(a)};
  if (a.size() < 2 || b.size() < 2) {
    const double variance = VarianceOf(a.size() < 2 ? b : a);
    result.error = std::sqrt(variance * (1 / of_a + 1 / of_b));
    result.freedom = std::max(of_a, of_b) - 1;
    result.spread = std::sqrt(variance);
    return result;
  }
  const double from_a = VarianceOf(a) / of_a, from_b = VarianceOf(b) / of_b;
  const double both = from_a + from_b;
  result.error = std::sqrt(both);
  result.freedom =
      both == 0 ? of_a + of_b - 2
                : both * both / (from_a * from_a / (of_a - 1) + from_b * from_b / (of_b - 1));
  result.spread =
      std::sqrt(((of_a - 1) * VarianceOf(a) + (of_b - 1) * VarianceOf(b)) / (of_a + of_b - 2));
  return result;
}

double SmallestFound(size_t runs, double spread, double confidence, double power) {
  const auto n = static_cast<double>(runs);
  if (runs < 2) return std::numeric_limits<double>::infinity();
  return spread * std::sqrt(2 / n) *
         (StudentQuantile(confidence, 2 * n - 2) + StudentQuantile(power, 2 * n - 2));
}

size_t RunsThatWouldDo(double difference, double spread, double confidence, double power,
                       size_t most) {
  const auto do_they = [&](size_t runs) {
    return SmallestFound(runs, spread, confidence, power) <= std::abs(difference);
  };
  if (!do_they(most)) return 0;
  size_t too_few = 1, enough = most;
  while (enough - too_few > 1) {
    const size_t middle = (too_few + enough) / 2;
    (do_they(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace ranktap::collector
