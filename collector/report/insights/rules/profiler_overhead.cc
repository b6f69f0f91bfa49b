// The cost of recording to the program: ranktap's own hooks, and what CUPTI says it did.
#include <fmt/core.h>

#include <algorithm>

#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfProfilerOverhead =
    0.03;  // of the time that was watched, or of the step

double HookShare(const Trace& trace) {
  if (trace.cost.watched_ns() == 0) return 0;
  return static_cast<double>(trace.cost.callback_ticks()) * trace.host_ns_per_tick /
         static_cast<double>(trace.cost.watched_ns());
}

std::vector<Interval> OverheadInSteps(const RankFacts& rank) {
  std::vector<Interval> set;
  for (const proto::OverheadEvent& overhead : rank.trace().overheads) {
    const auto start = static_cast<int64_t>(overhead.start_ns);
    if (rank.IsCounted(start)) set.emplace_back(start, static_cast<int64_t>(overhead.end_ns));
  }
  return Merged(std::move(set));
}

}  // namespace

Answer FindProfilerOverhead(const RankFacts& rank) {
  const Trace& trace = rank.trace();
  const bool has_cost = trace.cost.watched_ns() > 0 && trace.cost.callback_ticks() > 0;
  if (!has_cost && trace.overheads.empty())
    return CannotTell("what recording cost is not recorded");
  Answer answer;
  if (const double share = HookShare(trace); share >= kLeastShareOfProfilerOverhead) {
    const auto events = static_cast<int64_t>(trace.cost.callbacks());
    Insight insight{
        .finding = fmt::format("ranktap's own hooks take {} of the time that it watched ({} "
                               "events at level {}).",
                               FormatPercent(100 * share), FormatCount(events), trace.info.level),
        .where = "ranktap",
        .count = events,
        .lost_ns = static_cast<int64_t>(share * static_cast<double>(rank.step_ns()))};
    if (rank.has_device()) {
      insight.saving = Saving{
          .moments = rank.counted(), .causes = BitOf(Cause::kHost), .most_ns = insight.lost_ns};
    }
    answer.insights.push_back(std::move(insight));
  }
  std::vector<Interval> overhead = OverheadInSteps(rank);
  if (const int64_t lost = rank.PerStep(Length(overhead));
      rank.IsWorth(lost, kLeastShareOfProfilerOverhead)) {
    const auto count = static_cast<int64_t>(overhead.size());
    answer.insights.push_back(
        {.finding = fmt::format("CUPTI, which records for ranktap, holds the program {} for {} {} "
                                "({}).",
                                rank.TimesAStep(count), FormatNs(lost), rank.OfStep(),
                                FormatShare(lost, rank.step_ns())),
         .where = "CUPTI",
         .count = count,
         .lost_ns = lost,
         .saving = Saving{.moments = std::move(overhead), .causes = BitOf(Cause::kHost)}});
  }
  return answer;
}

}  // namespace ranktap::collector
