#include "collector/report/gate/change_search.h"

#include <algorithm>
#include <cmath>

namespace ranktap::collector {
namespace {

constexpr double kRunsAtEndsFrom = 10;
constexpr double kPriorNone = 0.05;
constexpr double kSmallestSpread = 0.0005, kLargestSpread = 0.3;
constexpr size_t kSpreads = 20;
// Scales of the half normal change: a few percent, some ten, or several times as much.
constexpr double kChangeScales[] = {0.02, 0.1, 0.7};

struct LogSums {
  double count = 0, of_values = 0;
};

double NormalBelow(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

// Its logarithm, also where the probability itself is too small for a double.
double LogNormalBelow(double z) {
  if (z > -20) return std::log(NormalBelow(z));
  constexpr double kLogRootTwoPi = 0.91893853320467274;
  return -z * z / 2 - std::log(-z) - kLogRootTwoPi;
}

double LogOfSum(const std::vector<double>& logs) {
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (const double one : logs) sum += std::exp(one - most);
  return most + std::log(sum);
}

std::vector<double> Spreads() {
  std::vector<double> spreads;
  for (size_t i = 0; i < kSpreads; ++i) {
    const double share = static_cast<double>(i) / (kSpreads - 1);
    spreads.push_back(kSmallestSpread * std::pow(kLargestSpread / kSmallestSpread, share));
  }
  return spreads;
}

}  // namespace

ChangeSearch::ChangeSearch(size_t commits) : skipped_(commits + 1) {}

void ChangeSearch::Add(size_t position, double value) {
  values_.push_back({position, std::log(value)});
}

void ChangeSearch::Skip(size_t position) { skipped_[position] = true; }

ChangeSearch::Belief ChangeSearch::Now() const {
  const size_t commits = skipped_.size() - 1;
  std::vector<LogSums> at(commits + 1);
  LogSums all;
  for (const Value& value : values_) {
    at[value.position].count += 1;
    at[value.position].of_values += value.logarithm;
    all.count += 1;
    all.of_values += value.logarithm;
  }
  Belief belief;
  for (const size_t end : {size_t{0}, commits}) {
    if (at[end].count > 0) continue;
    belief.measure = end;
    return belief;
  }
  const double mean = all.of_values / all.count;
  double squares = 0;
  for (const Value& value : values_) squares += std::pow(value.logarithm - mean, 2);

  static const std::vector<double> kAllSpreads = Spreads();
  const auto log_of_rest = [&](double spread) {
    return -squares / (2 * spread * spread) - (all.count - 1) * std::log(spread);
  };
  std::vector<double> logs(commits + 1), terms;  // logs[0]: nothing changed
  for (const double spread : kAllSpreads) terms.push_back(log_of_rest(spread));
  logs[0] = LogOfSum(terms) + std::log(kPriorNone);
  LogSums from;
  for (size_t commit = commits; commit > 0; --commit) {
    from.count += at[commit].count;
    from.of_values += at[commit].of_values;
    // A change of d takes 2 d xy - d² xx from the squares.
    const double xx = from.count * (all.count - from.count) / all.count;
    const double xy = from.of_values - from.count * mean;
    terms.clear();
    for (const double spread : kAllSpreads) {
      for (const double scale : kChangeScales) {
        const double precision = xx / (spread * spread) + 1 / (scale * scale);
        const double pull = xy / (spread * spread);
        terms.push_back(log_of_rest(spread) + pull * pull / (2 * precision) -
                        std::log(scale * std::sqrt(precision)) +
                        LogNormalBelow(pull / std::sqrt(precision)) +
                        std::log(2.0 / std::size(kChangeScales)));
      }
    }
    logs[commit] = LogOfSum(terms) + std::log((1 - kPriorNone) / static_cast<double>(commits));
  }
  const double whole = LogOfSum(logs);
  const double changed = 1 - std::exp(logs[0] - whole);

  double below = 0, nearest = 2, group = 0;
  size_t first = 1;
  for (size_t commit = 1; commit <= commits; ++commit) {
    const double probability = std::exp(logs[commit] - whole);
    below += probability;
    group += probability;
    if (skipped_[commit] && commit < commits) continue;
    if (group > belief.probability) {
      belief.probability = group;
      belief.first = first;
      belief.last = commit;
    }
    group = 0;
    first = commit + 1;
    const double away = std::abs(below / changed - 0.5);
    if (commit == commits || away >= nearest) continue;
    nearest = away;
    belief.measure = commit;
  }
  // One unlucky run at an end hides the change for long.
  const size_t end = at[0].count <= at[commits].count ? 0 : commits;
  if (all.count >= kRunsAtEndsFrom && at[0].count + at[commits].count < all.count / 3) {
    belief.measure = end;
  }
  return belief;
}

std::vector<double> ChangeSearch::Before(size_t position) const {
  std::vector<double> logs;
  for (const Value& value : values_) {
    if (value.position < position) logs.push_back(value.logarithm);
  }
  return logs;
}

std::vector<double> ChangeSearch::From(size_t position) const {
  std::vector<double> logs;
  for (const Value& value : values_) {
    if (value.position >= position) logs.push_back(value.logarithm);
  }
  return logs;
}

}  // namespace ranktap::collector
