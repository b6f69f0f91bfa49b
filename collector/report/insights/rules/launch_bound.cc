// The device runs dry again and again because the host launches more slowly than the device works.
#include <fmt/core.h>

#include "collector/facts/numbers/duration_distribution.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

// A host that only launches needs 5 to 100 us for each kernel; after a longer gap it did something
// else, which no graph would take from it.
constexpr int64_t kLongestLaunchGapNs = 1'000'000;
// A loop, and not a few launches after something else.
constexpr double kLeastGapsPerStep = 20;
constexpr double kLeastShareOfLaunchBound = 0.1;  // of the step
// Between two nodes of a graph; measured gaps are 0.8 to 1.3 us.
constexpr int64_t kGapInGraphNs = 1'000;

bool IsLaunchedByGraph(const RankFacts& rank, const DeviceSpan& span) {
  if (span.table == DeviceSpan::Table::kGraphLaunch) return true;
  return span.table == DeviceSpan::Table::kKernel && rank.trace().kernels.graph.At(span.row) != 0;
}

struct Gaps {
  std::vector<Interval> moments;  // less what a graph would leave
  DurationDistribution lengths;
};

Gaps GapsBeforeLaunches(const RankFacts& rank) {
  Gaps gaps;
  const DeviceSpans& spans = rank.spans();
  for (const LostPiece& piece : rank.lost(Cause::kHost)) {
    if (piece.span == kNone) continue;
    const DeviceSpan& next = spans[piece.span];
    const bool is_launch = next.launch != kNone && !IsLaunchedByGraph(rank, next);
    if (!is_launch || piece.length() > kLongestLaunchGapNs) continue;
    gaps.lengths.Add(piece.length());
    if (piece.length() > kGapInGraphNs) {
      gaps.moments.emplace_back(piece.start, piece.end - kGapInGraphNs);
    }
  }
  return gaps;
}

}  // namespace

Answer FindLaunchBound(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  Gaps gaps = GapsBeforeLaunches(rank);
  const int64_t count = gaps.lengths.count;
  const int64_t lost = rank.PerStep(gaps.lengths.total_ns);
  if (rank.TimesPerStep(count) < kLeastGapsPerStep || !rank.IsWorth(lost, kLeastShareOfLaunchBound))
    return {};
  Insight insight{
      .finding = fmt::format(
          "The device waits {} {} ({}) for the next launch: {} nothing is queued, {} each in the "
          "median.",
          FormatNs(lost), rank.OfStep(), FormatShare(lost, rank.step_ns()), rank.TimesAStep(count),
          FormatNs(gaps.lengths.median_ns())),
      .count = count,
      .lost_ns = lost,
      .saving = Saving{.moments = std::move(gaps.moments), .causes = BitOf(Cause::kHost)}};
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector
