#include "collector/facts/causes/late_module.h"

#include "collector/facts/causes/pass_places.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/rank_windows.h"
#include "collector/facts/steps.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

using TimesOf = TimesByName (*)(const Trace& trace, const RankWaterfall& waterfall);

std::vector<ModuleExcess> OverMedian(const TimesByName& own,
                                     const std::vector<TimesByName>& others) {
  std::vector<ModuleExcess> found;
  for (const auto& [name, ns] : own) {
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

std::vector<ModuleExcess> ExcessOf(const Run& run, uint32_t late, TimesOf times_of) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<TimesByName> others;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    if (FirstOfRank(run, t) == FirstOfRank(run, late) || waterfalls[t].counted == 0) continue;
    TimesByName times = times_of(run.traces[t], waterfalls[t]);
    if (!times.empty()) others.push_back(std::move(times));
  }
  if (others.empty() || waterfalls[late].counted == 0) return {};
  return OverMedian(times_of(run.traces[late], waterfalls[late]), others);
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

std::string PlaceOfLongSteps(const Trace& trace, const RankWaterfall& longer,
                             const RankWaterfall& shorter, int64_t excess_ns) {
  const auto most_of = [&](TimesOf times_of) -> std::string {
    const TimesByName own = times_of(trace, longer);
    const std::vector<ModuleExcess> of = OverMedian(own, {times_of(trace, shorter)});
    const bool says_more = own.size() > 1;  // the only module says no more than the pass
    return says_more && !of.empty() && of[0].ns * 2 > excess_ns ? of[0].name : "";
  };
  std::string place = most_of(&TimesOfModules);
  if (place.empty()) place = most_of(&TimesOfNodes);
  if (!place.empty() || longer.on_host) return place;
  const std::string kernel = most_of(&TimesOfKernels);
  return kernel.empty() ? "" : TellingKernelName(ReadableKernelName(kernel));
}

}  // namespace ranktap::collector
