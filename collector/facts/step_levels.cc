#include "collector/facts/step_levels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collector/facts/numbers/describe.h"
#include "collector/facts/step_list.h"

namespace ranktap::collector {
namespace {

constexpr size_t kLeastOfALevel = 10;
constexpr size_t kLeastStretch = 5;   // steps on each side of a change
constexpr double kLeastChange = 1.5;  // between the medians of both sides
constexpr double kOnItsSide = 0.8;    // of a stretch's steps
constexpr double kLong = 3;           // medians
constexpr double kMostLong = 0.1;     // of the steps
constexpr double kLeastShare = 0.25;  // of the time, in which long steps are worth a word

using Positions = std::vector<size_t>;

double MedianOf(const StepList& steps, const Positions& positions) {
  std::vector<double> lengths;
  for (const size_t i : positions) lengths.push_back(static_cast<double>(steps.list[i].length()));
  return Median(std::move(lengths));
}

int64_t TimeOf(const StepList& steps, const Positions& positions) {
  return std::accumulate(positions.begin(), positions.end(), int64_t{0},
                         [&steps](int64_t sum, size_t i) { return sum + steps.list[i].length(); });
}

void SetLengths(const StepList& steps, StepLevels* levels) {
  levels->some_ns = static_cast<int64_t>(MedianOf(steps, levels->some));
  levels->others_ns = static_cast<int64_t>(MedianOf(steps, levels->others));
  const int64_t some = TimeOf(steps, levels->some), others = TimeOf(steps, levels->others);
  levels->share =
      some + others == 0 ? 0 : static_cast<double>(some) / static_cast<double>(some + others);
}

StepLevels FewLong(const StepList& steps, const Positions& counted,
                   const std::vector<bool>& recorded) {
  StepLevels levels;
  const double limit = kLong * MedianOf(steps, counted);
  for (const size_t i : counted) {
    const bool is_long =
        static_cast<double>(steps.list[i].length()) > limit && (recorded.empty() || !recorded[i]);
    (is_long ? levels.some : levels.others).push_back(i);
  }
  const double most = kMostLong * static_cast<double>(counted.size());
  if (levels.some.empty() || static_cast<double>(levels.some.size()) > most) return {};
  SetLengths(steps, &levels);
  levels.kind = levels.share < kLeastShare ? StepLevels::kAlike : StepLevels::kFewLong;
  return levels;
}

// Where two stretches differ most: the split that leaves least variance in both, of logarithms.
size_t BestSplit(const StepList& steps, const Positions& counted) {
  std::vector<double> sums = {0};
  for (const size_t i : counted) {
    sums.push_back(sums.back() +
                   std::log(static_cast<double>(std::max<int64_t>(steps.list[i].length(), 1))));
  }
  const size_t n = counted.size();
  size_t best = kLeastStretch;
  double most = -1;
  for (size_t k = kLeastStretch; k + kLeastStretch <= n; ++k) {
    const auto before = static_cast<double>(k), after = static_cast<double>(n - k);
    const double difference = sums[k] / before - (sums[n] - sums[k]) / after;
    const double between = before * after * difference * difference;
    if (between > most) {
      most = between;
      best = k;
    }
  }
  return best;
}

StepLevels Change(const StepList& steps, const Positions& counted) {
  const auto split = counted.begin() + static_cast<ptrdiff_t>(BestSplit(steps, counted));
  StepLevels levels;
  levels.some.assign(counted.begin(), split);
  levels.others.assign(split, counted.end());
  SetLengths(steps, &levels);
  const double low = static_cast<double>(std::min(levels.some_ns, levels.others_ns));
  const double high = static_cast<double>(std::max(levels.some_ns, levels.others_ns));
  if (low <= 0 || high < kLeastChange * low) return {};
  const double middle = std::sqrt(low) * std::sqrt(high);
  const bool some_are_long = levels.some_ns > levels.others_ns;
  const auto keeps_its_side = [&](const Positions& stretch, bool is_long) {
    const auto on_side = std::ranges::count_if(stretch, [&](size_t i) {
      return (static_cast<double>(steps.list[i].length()) > middle) == is_long;
    });
    return static_cast<double>(on_side) >= kOnItsSide * static_cast<double>(stretch.size());
  };
  const bool is_change =
      keeps_its_side(levels.some, some_are_long) && keeps_its_side(levels.others, !some_are_long);
  levels.kind = is_change ? StepLevels::kChange : StepLevels::kAlike;
  return levels;
}

}  // namespace

StepLevels LevelsOf(const StepList& steps, const std::vector<bool>& recorded) {
  Positions counted;
  for (size_t i = 0; i < steps.list.size(); ++i) {
    if (!steps.list[i].warm_up) counted.push_back(i);
  }
  if (steps.source.empty() || steps.is_period || counted.size() < kLeastOfALevel) return {};
  // Few long steps move the mean of a stretch, so that a change would be said to be theirs.
  StepLevels few = FewLong(steps, counted, recorded);
  const bool is_stretch =
      few.some.size() >= kLeastStretch && few.some.back() - few.some.front() < few.some.size();
  if (few.kind == StepLevels::kFewLong && !is_stretch) return few;
  const StepLevels change = Change(steps, counted);
  return change.kind == StepLevels::kChange ? change : few;
}

}  // namespace ranktap::collector
