// The device, or a host without one, waits for the data loader.
#include <fmt/core.h>

#include "collector/facts/host_activity.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

// A loader that keeps up takes what its queue takes: 0.1 to 1 ms of steps of 100 ms.
constexpr double kLeastShare = 0.03;  // of the step

}  // namespace

Answer FindDataLoading(const RankFacts& rank) {
  if (rank.waterfall().counted == 0) return CannotTell("no steps are recorded");
  const Trace& trace = rank.trace();
  if (trace.ranges.size() + trace.operators.size() + trace.python_calls.size() == 0) {
    return CannotTell("no ranges and no operators are recorded");
  }
  const int64_t lost = rank.waterfall().mean[static_cast<size_t>(Cause::kDataLoading)];
  if (!rank.IsWorth(lost, kLeastShare)) return {};
  const std::vector<Interval> loading = Intersection(DataLoading(trace), rank.counted());
  Insight insight{
      .finding = fmt::format("{} waits for the data loader for {} {} ({}), {}.",
                             rank.has_device() ? "An idle device" : "The host", FormatNs(lost),
                             rank.OfStep(), FormatShare(lost, rank.step_ns()),
                             rank.TimesAStep(static_cast<int64_t>(loading.size()))),
      .count = static_cast<int64_t>(loading.size()),
      .lost_ns = lost};
  if (rank.has_device()) {
    insight.saving = Saving{.moments = rank.counted(), .causes = BitOf(Cause::kDataLoading)};
  }
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector
