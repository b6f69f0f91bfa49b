// The program reads a tensor (.item(), .cpu(), a condition, nonzero): the host waits for all that
// was launched before, and the device then for what it launches next.
#include <fmt/core.h>

#include "collector/report/human_units.h"
#include "collector/report/insights/host_waits.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfTensorReads = 0.01;  // of the step, idle afterwards: as the verdict's

Insight AboutRead(const RankFacts& rank, WaitsAtPlace place) {
  const int64_t idle = rank.PerStep(place.idle_ns);
  return {.finding = fmt::format(
              "{} reads device memory {} and waits for it, {} each in the mean; afterwards the "
              "device is idle for {} {} ({}).",
              place.where.empty() ? "The program" : place.where, rank.TimesAStep(place.count),
              FormatNs(place.host_ns / place.count), FormatNs(idle), rank.OfStep(),
              FormatShare(idle, rank.step_ns())),
          .where = std::move(place.where),
          .count = place.count,
          .lost_ns = idle,
          .saving = Saving{.moments = std::move(place.moments), .causes = BitOf(Cause::kSync)}};
}

}  // namespace

Answer FindTensorReads(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  Answer answer;
  for (WaitsAtPlace& place : WaitsByPlace(rank, WaitFor::kRead)) {
    if (!rank.IsWorth(rank.PerStep(place.idle_ns), kLeastShareOfTensorReads)) continue;
    answer.insights.push_back(AboutRead(rank, std::move(place)));
  }
  return answer;
}

}  // namespace ranktap::collector
