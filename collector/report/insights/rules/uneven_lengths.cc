// Ranks whose batches differ from step to step: the longest sequences make all wait.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/steps.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastImbalance = 0.05;  // of the arithmetic of the rank with most of it
constexpr double kLeastSpread = 0.2;      // of one rank's steps: (most - least) / mean

using StepFlops = std::map<int64_t, int64_t>;  // by step number

// Arithmetic of counted steps in which operators with shapes are recorded.
StepFlops FlopsBySteps(const Run& run, uint32_t trace) {
  const Trace& of = run.traces[trace];
  const StepList& steps = DetectSteps(of);
  StepFlops flops;
  if (steps.source.empty() || steps.on_device) return flops;
  const std::vector<FlopCount> counts = CountFlops(of, FlopRule::kCounter);
  for (size_t op = 0; op < counts.size(); ++op) {
    if (counts[op].flops == 0) continue;
    const int64_t index = StepIndexAt(steps, of.operators.start[op]);
    if (index < 0 || steps.list[static_cast<size_t>(index)].warm_up) continue;
    AddCapped(counts[op].flops, &flops[steps.list[static_cast<size_t>(index)].number]);
  }
  return flops;
}

struct Spread {
  int64_t least = INT64_MAX, most = 0;
  double sum = 0;
  int64_t steps = 0;
  void Add(int64_t flops) {
    least = std::min(least, flops);
    most = std::max(most, flops);
    sum += static_cast<double>(flops);
    ++steps;
  }
  double share() const {
    return steps < 3 ? 0 : static_cast<double>(most - least) * static_cast<double>(steps) / sum;
  }
};

Answer OverSteps(const Run& run, const std::vector<StepFlops>& all) {
  Answer answer;
  for (uint32_t t = 0; t < all.size(); ++t) {
    Spread spread;
    for (const auto& [number, flops] : all[t]) spread.Add(flops);
    if (spread.share() < kLeastSpread) continue;
    answer.insights.push_back(
        {.trace = t,
         .finding = fmt::format(
             "The steps of {} differ in their work: {} to {} floating-point operations in {} "
             "recorded steps.",
             RankName(run.traces[t]), FormatFlops(spread.least), FormatFlops(spread.most),
             spread.steps),
         .count = spread.steps});
    break;  // all ranks read the same kind of data
  }
  return answer;
}

struct Imbalance {
  double sum = 0;
  int64_t steps = 0;
  std::map<uint32_t, int64_t> most_often;  // how often which rank had most to do
};

Imbalance AcrossRanks(const std::vector<StepFlops>& all) {
  Imbalance found;
  for (const auto& [number, first] : all[0]) {
    int64_t most = 0;
    uint32_t who = 0;
    double sum = 0;
    bool is_complete = true;
    for (uint32_t t = 0; t < all.size() && is_complete; ++t) {
      const auto same = all[t].find(number);
      is_complete = same != all[t].end();
      if (!is_complete) break;
      sum += static_cast<double>(same->second);
      if (same->second > most) {
        most = same->second;
        who = t;
      }
    }
    if (!is_complete || most == 0) continue;
    found.sum += 1 - sum / static_cast<double>(all.size()) / static_cast<double>(most);
    ++found.steps;
    ++found.most_often[who];
  }
  return found;
}

}  // namespace

Answer FindUnevenLengths(const Run& run) {
  std::vector<StepFlops> all;
  size_t told = 0;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    all.push_back(FlopsBySteps(run, t));
    told = std::max(told, all.back().size());
  }
  if (told < 3) return CannotTell("fewer than three steps are recorded with shapes");
  const Imbalance found = AcrossRanks(all);
  const double share = found.steps == 0 ? 0 : found.sum / static_cast<double>(found.steps);
  // One rank that has most to do in all steps has another shard, not other sequences.
  if (all.size() < 2 || found.most_often.size() < 2 || share < kLeastImbalance) {
    return OverSteps(run, all);
  }
  const uint32_t most = std::ranges::max_element(found.most_often, {}, [](const auto& entry) {
                          return entry.second;
                        })->first;
  const RankFacts rank(run, most);
  const auto compute =
      static_cast<double>(rank.waterfall().mean[static_cast<size_t>(Cause::kCompute)]);
  Insight insight{
      .trace = most,
      .finding = fmt::format("In {} steps the rank with most work has {} more to do than the mean "
                             "of {} ranks has of it, and it is another rank from step to step.",
                             found.steps, FormatPercent(100 * share), all.size()),
      .count = found.steps,
      .lost_ns = static_cast<int64_t>(share * compute)};
  if (rank.has_device()) {
    insight.saving =
        Saving{.moments = rank.counted(), .causes = BitOf(Cause::kCompute), .share = share};
  }
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector
