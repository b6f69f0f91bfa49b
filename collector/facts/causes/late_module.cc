#include "collector/facts/causes/late_module.h"

#include "collector/facts/causes/pass_places.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/rank_windows.h"
#include "collector/facts/steps.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

using TimesOf = TimesByName (*)(const Trace& trace, const RankWaterfall& waterfall);

std::vector<ModuleExcess> ExcessOf(const Run& run, uint32_t late, TimesOf times_of) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<TimesByName> others;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    if (FirstOfRank(run, t) == FirstOfRank(run, late) || waterfalls[t].counted == 0) continue;
    TimesByName times = times_of(run.traces[t], waterfalls[t]);
    if (!times.empty()) others.push_back(std::move(times));
  }
  std::vector<ModuleExcess> found;
  if (others.empty() || waterfalls[late].counted == 0) return found;
  for (const auto& [name, ns] : times_of(run.traces[late], waterfalls[late])) {
    std::vector<double> there;
    for (const TimesByName& times : others) {
      const auto at = times.find(name);
      there.push_back(at == times.end() ? 0 : static_cast<double>(at->second));
    }
    const int64_t excess = ns - static_cast<int64_t>(Median(std::move(there)));
    if (excess > 0) found.push_back({std::string(name), excess});
  }
  SortRows(&found, [](const ModuleExcess& a, const ModuleExcess& b) { return a.ns > b.ns; });
  return found;
}

// Kernels that begin in counted steps.
TimesByName TimesOfKernels(const Trace& trace, const RankWaterfall& waterfall) {
  TimesByName times;
  const Kernels& kernels = trace.kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const int64_t step = StepIndexAt(waterfall.steps, kernels.start[i]);
    if (step < 0 || waterfall.steps.list[static_cast<size_t>(step)].warm_up) continue;
    times[trace.dictionary.String(kernels.name[i])] += kernels.end[i] - kernels.start[i];
  }
  for (auto& [name, ns] : times) ns /= static_cast<int64_t>(waterfall.counted);
  return times;
}

}  // namespace

std::vector<ModuleExcess> ExcessOfKernels(const Run& run, uint32_t trace) {
  return ExcessOf(run, trace, &TimesOfKernels);
}

std::vector<ModuleExcess> ExcessOfModules(const Run& run, uint32_t trace) {
  return ExcessOf(run, trace, &TimesOfModules);
}

std::vector<ModuleExcess> ExcessOfNodes(const Run& run, uint32_t trace) {
  return ExcessOf(run, trace, &TimesOfNodes);
}

std::string ModuleOfExcess(const Run& run, uint32_t trace, Cause cause, int64_t excess_ns) {
  std::vector<ModuleExcess> of;
  if (cause == Cause::kForward || cause == Cause::kCompute) of = ExcessOfModules(run, trace);
  if (cause == Cause::kBackward) of = ExcessOfNodes(run, trace);
  return of.empty() || of[0].ns * 2 <= excess_ns ? "" : of[0].name;
}

}  // namespace ranktap::collector
