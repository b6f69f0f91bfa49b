// Operators in the middle of a pass that read a number back from the device to go on.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "collector/report/human_units.h"
#include "collector/report/insights/host_waits.h"
#include "collector/report/insights/pass_times.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfHiddenCopies =
    0.01;  // of the step, waited by the host or idle afterwards

// The program says itself that it copies; all others copy for reasons of their own.
bool IsSaidCopy(std::string_view name) {
  for (const std::string_view copy : {"aten::to", "aten::_to_copy", "aten::copy_", "aten::cpu",
                                      "aten::_copy_from", "aten::set_"}) {
    if (name == copy) return true;
  }
  return false;
}

struct Reads {
  int64_t count = 0, host_ns = 0;
  std::vector<bool> picks;  // by row of rank.waits()
};

std::map<std::string, Reads> HiddenReads(const RankFacts& rank) {
  const std::vector<Interval> passes = ModelPasses(rank.trace());
  const std::vector<WaitReason> reasons = ReasonsOfWaits(rank);
  std::map<std::string, Reads> by_place;
  for (size_t i = 0; i < reasons.size(); ++i) {
    const HostWait& wait = rank.waits()[i];
    if (reasons[i].what != WaitFor::kRead || !rank.IsCounted(wait.start)) continue;
    if (Within(passes, wait.start, wait.start + 1).empty()) continue;
    const uint32_t op = rank.OperatorAt(wait.writer(), wait.start);
    if (op == kNone) continue;
    const Trace& trace = rank.trace();
    const std::string_view name = trace.dictionary.String(trace.operators.name[op]);
    if (!name.starts_with("aten::") || IsSaidCopy(name)) continue;
    Reads& reads = by_place[rank.PlaceOf(wait)];
    ++reads.count;
    reads.host_ns += wait.end - wait.start;
    reads.picks.resize(reasons.size());
    reads.picks[i] = true;
  }
  return by_place;
}

}  // namespace

Answer FindHiddenCopies(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  if (rank.trace().operators.size() == 0) return CannotTell("no operators are recorded");
  if (ModelPasses(rank.trace()).empty())
    return CannotTell("no forward or backward pass is recorded");
  Answer answer;
  for (const auto& [place, reads] : HiddenReads(rank)) {
    std::vector<Interval> idle = IdleAfterWaits(rank, reads.picks);
    const int64_t lost = rank.PerStep(Length(Merged(idle)));
    const int64_t waited = rank.PerStep(reads.host_ns);
    if (!rank.IsWorth(waited, kLeastShareOfHiddenCopies) &&
        !rank.IsWorth(lost, kLeastShareOfHiddenCopies))
      continue;
    answer.insights.push_back(
        {.finding = fmt::format(
             "In the middle of a pass {} copies a result to the host {} to know how to go on: the "
             "host waits {} {}, and the device is idle for {} afterwards.",
             place, rank.TimesAStep(reads.count), FormatNs(waited), rank.OfStep(), FormatNs(lost)),
         .where = place,
         .count = reads.count,
         .lost_ns = lost,
         .saving = Saving{.moments = std::move(idle), .causes = BitOf(Cause::kSync)}});
  }
  return answer;
}

}  // namespace ranktap::collector
