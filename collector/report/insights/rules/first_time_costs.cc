// Contexts, code that is loaded or compiled, and first calls, where they are a loss of the trace.
#include <fmt/core.h>

#include <algorithm>

#include "collector/report/human_units.h"
#include "collector/report/insights/first_time.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfFirstTimeCosts = 0.05;  // of the trace, or of the step

std::string_view NameOf(FirstTime kind) {
  switch (kind) {
    case FirstTime::kContext:
      return "making a context";
    case FirstTime::kLoading:
      return "loading code";
    case FirstTime::kCompiling:
      return "compiling";
    case FirstTime::kFirstCall:
      return "first calls of operators";
  }
  __builtin_unreachable();
}

// "loading code 2.000 s, compiling 1.000 s": the longest first.
std::string DescribeKinds(const FirstTimeCosts& costs, const RankFacts& rank) {
  std::vector<std::pair<int64_t, FirstTime>> kinds;
  for (size_t kind = 0; kind < kFirstTimes; ++kind) {
    const int64_t ns = rank.PerStep(costs.by_kind[kind]);
    if (ns > 0) kinds.emplace_back(ns, static_cast<FirstTime>(kind));
  }
  std::ranges::stable_sort(kinds, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [ns, kind] : kinds) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", NameOf(kind), FormatNs(ns));
  }
  return text;
}

}  // namespace

Answer FindFirstTimeCosts(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (rank.trace().api_calls.size() == 0 && rank.trace().operators.size() == 0) {
    return CannotTell("nothing of the host is recorded");
  }
  // In steps after the warm-up it is no first time: "recompilation" says so.
  if (rank.has_steps()) return {};
  const FirstTimeCosts costs = FirstTimeCostsOf(rank);
  const int64_t lost = rank.PerStep(costs.ns());
  if (!rank.IsWorth(lost, kLeastShareOfFirstTimeCosts)) return {};
  const auto most =
      std::ranges::max_element(costs.by_name, {}, [](const auto& entry) { return entry.second; });
  return {.insights = {{.finding = fmt::format(
                            "No device runs anything for {} {} ({}) that a process pays once: {}; "
                            "most of it in {}.",
                            FormatNs(lost), rank.OfStep(), FormatShare(lost, rank.step_ns()),
                            DescribeKinds(costs, rank), most->first),
                        .where = most->first,
                        .advice = std::string(AdviceOn(costs.Most())),
                        .count = static_cast<int64_t>(costs.idle.size()),
                        .lost_ns = lost,
                        .saving = Saving{.moments = costs.idle, .causes = kIdleCauses}}}};
}

}  // namespace ranktap::collector
