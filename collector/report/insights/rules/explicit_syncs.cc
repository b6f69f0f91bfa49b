// Calls that do nothing but wait for the device (nsys: cuda_api_sync).
#include <fmt/core.h>

#include "collector/report/human_units.h"
#include "collector/report/insights/host_waits.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

// A share of the step, in the calls or idle after them: the verdict has the same.
constexpr double kLeastShareOfExplicitSyncs = 0.01;
// A wait that leaves no idle time still keeps the host from running ahead, if it comes in each
// step; one at the end of a run costs nothing.
constexpr double kLeastSyncsPerStep = 0.5;

bool IsWorthSaying(const RankFacts& rank, const WaitsAtPlace& place) {
  if (rank.IsWorth(rank.PerStep(place.idle_ns), kLeastShareOfExplicitSyncs)) return true;
  return rank.has_steps() && rank.TimesPerStep(place.count) >= kLeastSyncsPerStep &&
         rank.IsWorth(rank.PerStep(place.host_ns), kLeastShareOfExplicitSyncs);
}

Insight AboutSync(const RankFacts& rank, WaitsAtPlace place) {
  const int64_t idle = rank.PerStep(place.idle_ns);
  const std::string in = place.where.empty() ? "" : fmt::format(" in {}", place.where);
  return {.finding = fmt::format(
              "{}{} is called {} and holds the host for {} {}; afterwards the device is idle for "
              "{} ({}).",
              place.MostCalled(), in, rank.TimesAStep(place.count),
              FormatNs(rank.PerStep(place.host_ns)), rank.OfStep(), FormatNs(idle),
              FormatShare(idle, rank.step_ns())),
          .where = place.where.empty() ? std::string(place.MostCalled()) : std::move(place.where),
          .count = place.count,
          .lost_ns = idle,
          .saving = Saving{.moments = std::move(place.moments), .causes = BitOf(Cause::kSync)}};
}

}  // namespace

Answer FindExplicitSyncs(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (rank.trace().api_calls.size() == 0) return CannotTell("no CUDA calls are recorded");
  Answer answer;
  for (WaitsAtPlace& place : WaitsByPlace(rank, WaitFor::kAnything)) {
    if (IsWorthSaying(rank, place)) answer.insights.push_back(AboutSync(rank, std::move(place)));
  }
  return answer;
}

}  // namespace ranktap::collector
