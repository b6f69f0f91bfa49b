#include "collector/report/steps/mann_whitney.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace ranktap::collector {
namespace {

// Up to where p values are exact: by the normal distribution 5 steps against 5 are never
// significant, whatever they took.
constexpr size_t kExactOne = 8, kExactBoth = 40;

// How many of the ways to pick `na` of 1..na + nb have each sum, less the smallest sum.
std::vector<double> CountsOfU(size_t na, size_t nb) {
  const size_t most = na * nb;
  std::vector<std::vector<double>> ways(na + 1, std::vector<double>(most + 1));
  ways[0][0] = 1;
  for (size_t item = 0; item < na + nb; ++item) {
    for (size_t picked = std::min(na, item + 1); picked > 0; --picked) {
      // The k-th pick adds its distance from k.
      const size_t adds = item + 1 - picked;
      for (size_t u = most + 1; u-- > adds;) ways[picked][u] += ways[picked - 1][u - adds];
    }
  }
  return ways[na];
}

// P(U >= u or U <= na nb - u) where nothing differs.
double ExactP(double u, size_t na, size_t nb) {
  const std::vector<double> counts = CountsOfU(na, nb);
  const double far = std::max(u, static_cast<double>(na * nb) - u);
  double all = 0, beyond = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    all += counts[i];
    if (static_cast<double>(i) >= far) beyond += counts[i];
  }
  return std::min(1.0, 2 * beyond / all);
}

}  // namespace

double MannWhitney(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;  // value, is of a
  for (const double value : a) all.emplace_back(value, true);
  for (const double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  const auto n = static_cast<double>(all.size());
  double ranks_of_a = 0, ties = 0;
  bool any_ties = false;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    const auto equal = static_cast<double>(end - i);
    ties += equal * equal * equal - equal;
    any_ties |= equal > 1;
    const double rank = (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
    for (; i < end; ++i) ranks_of_a += all[i].second ? rank : 0;
  }
  const auto na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  const double u = ranks_of_a - na * (na + 1) / 2;
  const double variance = na * nb / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1;
  if (!any_ties && std::min(a.size(), b.size()) <= kExactOne && a.size() + b.size() <= kExactBoth) {
    return ExactP(u, a.size(), b.size());
  }
  const double distance = std::max(0.0, std::abs(u - na * nb / 2) - 0.5);
  return std::erfc(distance / std::sqrt(variance) / std::sqrt(2.0));
}

}  // namespace ranktap::collector
