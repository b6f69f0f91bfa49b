// Whether the file can show what of a loss the critical path bears.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "collector/facts/backlog.h"
#include "collector/facts/causes/critical_path.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/claims/losses.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/loss_place.h"
#include "collector/report/steps/recoverable.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastOfPath = 0.9;  // of the counted steps
constexpr double kMostOfPath = 0.5;   // one cause has more: that is what the path is

std::vector<Interval> CountedSteps(const RankWaterfall& waterfall) {
  std::vector<Interval> counted;
  for (const Step& step : waterfall.steps.list) {
    if (!step.warm_up) counted.emplace_back(step.start, step.end);
  }
  return Merged(std::move(counted));
}

struct PathShare {
  Cause cause{};
  double share = 0;
};

// The cause that has most of the path, as *critical-path* adds it up.
PathShare MostOfPath(const Run& run) {
  CauseTimes times{};
  FindCriticalPath(run).ForEach([&times](const PathSegment& segment) {
    times[static_cast<size_t>(segment.cause)] += segment.ns;
  });
  const int64_t all = std::accumulate(times.begin(), times.end(), int64_t{0});
  const auto most = std::max_element(times.begin(), times.end());
  if (all == 0) return {};
  return {static_cast<Cause>(most - times.begin()),
          static_cast<double>(*most) / static_cast<double>(all)};
}

std::string WhyLaunchesAreMissing(const Run& run) {
  size_t known = 0, unknown = 0;
  for (const Trace& trace : run.traces) {
    const Column<uint32_t>& launches = trace.kernels.launch;
    const auto without = static_cast<size_t>(std::count(launches.begin(), launches.end(), kNone));
    known += launches.size() - without;
    if (without == 0) continue;
    const DeviceSpans& spans = DeviceTimeline(trace);
    const Backlog& backlog = BacklogOf(trace);
    unknown += static_cast<size_t>(
        std::count_if(spans.begin(), spans.end(), [&backlog](const DeviceSpan& span) {
          return span.table == DeviceSpan::Table::kKernel && span.launch == kNone &&
                 !backlog.Holds(span);
        }));
  }
  if (unknown <= known) return "";
  return known == 0 ? "no launches are recorded" : "most launches are not recorded";
}

}  // namespace

std::string LaunchesAreMissing(const Run& run) {
  struct Missing {
    std::string why;
  };
  return run.memo.Get<Missing>([&run] { return Missing{WhyLaunchesAreMissing(run)}; }).why;
}

std::string PathIsCutOff(const Run& run) {
  const CriticalPath& path = FindCriticalPath(run);
  if (path.empty()) return "";
  const int64_t covered = CoveredByCriticalPath(run);
  // Ranks that share no collective: the path is of that alone which worked last.
  const int64_t all = Length(CountedSteps(ComputeWaterfalls(run)[path.last().trace]));
  if (static_cast<double>(covered) >= kLeastOfPath * static_cast<double>(all)) return "";
  return fmt::format("the critical path is known for {} of the steps only",
                     FormatShare(covered, all));
}

// The path runs elsewhere where it sees no reason to wait. Whether there is one it cannot know.
std::string CauseIsNotInTheFile(const Run& run) {
  const std::vector<Loss>& losses = FindLosses(run);
  if (losses.empty() || losses[0].cause != Cause::kDependency) return "";
  if (!FindLossPlaces(run)[static_cast<size_t>(Cause::kDependency)].is_unseen) return "";
  const PathShare most = MostOfPath(run);
  const std::string meanwhile =
      most.cause == Cause::kDependency || most.cause == Cause::kCompute || most.share <= kMostOfPath
          ? ""
          : fmt::format(", and the critical path is {} {}", FormatPercent(100 * most.share),
                        NameOf(most.cause));
  return "the file does not show what the launched work waits for" + meanwhile;
}

}  // namespace ranktap::collector
