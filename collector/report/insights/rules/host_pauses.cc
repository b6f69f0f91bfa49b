// Two things stop a rank's host in counted steps: garbage collection and saved checkpoints.
#include <fmt/core.h>

#include <algorithm>

#include "collector/facts/host_activity.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfHostPauses = 0.01;  // of the step

struct Pauses {
  std::vector<Interval> all;
  int64_t longest_ns = 0;
};

Pauses InCountedSteps(const RankFacts& rank, std::vector<Interval> pauses) {
  Pauses found;
  for (const Interval& pause : Merged(std::move(pauses))) {
    const std::vector<Interval> part = Within(rank.counted(), pause.first, pause.second);
    if (part.empty()) continue;
    found.all.insert(found.all.end(), part.begin(), part.end());
    found.longest_ns = std::max(found.longest_ns, pause.second - pause.first);
  }
  return found;
}

bool HasHooks(const Trace& trace) {
  return !RangesIn(trace, proto::kStepDomain).empty() ||
         !RangesIn(trace, proto::kPhaseDomain).empty();
}

Answer AsAnswer(const RankFacts& rank, Pauses pauses, std::string_view what, Cause cause) {
  const int64_t lost = rank.PerStep(Length(pauses.all));
  if (!rank.IsWorth(lost, kLeastShareOfHostPauses)) return {};
  const auto count = static_cast<int64_t>(pauses.all.size());
  Insight insight{
      .finding = fmt::format("{} stops the host {}, for {} {} ({}); the longest takes "
                             "{}.",
                             what, rank.TimesAStep(count), FormatNs(lost), rank.OfStep(),
                             FormatShare(lost, rank.step_ns()), FormatNs(pauses.longest_ns)),
      .count = count,
      .lost_ns = lost};
  // Without a device nobody knows what else the host would have waited for.
  if (rank.has_device()) {
    insight.saving = Saving{.moments = std::move(pauses.all), .causes = BitOf(cause)};
  }
  return {.insights = {std::move(insight)}};
}

// The program's torch.save among the Python calls of torch.profiler.
std::vector<Interval> SavesAmongCalls(const Trace& trace) {
  std::vector<Interval> set;
  const PythonCalls& calls = trace.python_calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string_view name = trace.dictionary.String(calls.name[i]);
    const bool is_save = name.find("torch/serialization.py") != name.npos ||
                         name.find("torch/distributed/checkpoint") != name.npos;
    if (is_save && name.ends_with(": save")) set.emplace_back(calls.start[i], calls.end[i]);
  }
  return set;
}

}  // namespace

Answer FindGarbageCollection(const RankFacts& rank) {
  if (!HasHooks(rank.trace())) return CannotTell("garbage collection is not recorded");
  return AsAnswer(rank, InCountedSteps(rank, PhaseIntervals(rank.trace(), proto::kCollectionPhase)),
                  "Python's garbage collection", Cause::kCollection);
}

Answer FindCheckpointStalls(const RankFacts& rank) {
  const Trace& trace = rank.trace();
  if (!HasHooks(trace) && trace.python_calls.size() == 0) {
    return CannotTell("saved checkpoints are not recorded");
  }
  std::vector<Interval> saves = PhaseIntervals(trace, proto::kCheckpointPhase);
  if (saves.empty()) saves = SavesAmongCalls(trace);
  return AsAnswer(rank, InCountedSteps(rank, std::move(saves)), "Saving checkpoints",
                  HasHooks(trace) ? Cause::kCheckpoint : Cause::kHost);
}

}  // namespace ranktap::collector
