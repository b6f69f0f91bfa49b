#include "collector/facts/causes/late_module.h"

#include <algorithm>
#include <optional>

#include "collector/facts/causes/pass_places.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/rank_windows.h"
#include "collector/facts/step_list.h"
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

// By trace; empty of those without counted steps.
std::vector<TimesByName> TimesOfAll(const Run& run, TimesOf times_of) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<TimesByName> all(run.traces.size());
  ForEachTraceAtOnce(run, [&](uint32_t t) {
    if (waterfalls[t].counted > 0) all[t] = times_of(run.traces[t], waterfalls[t]);
  });
  return all;
}

std::vector<ModuleExcess> ExcessOf(const Run& run, uint32_t late,
                                   const std::vector<TimesByName>& all) {
  std::vector<TimesByName> others;
  for (uint32_t t = 0; t < all.size(); ++t) {
    if (!all[t].empty() && FirstOfRank(run, t) != FirstOfRank(run, late)) others.push_back(all[t]);
  }
  return others.empty() ? std::vector<ModuleExcess>() : OverMedian(all[late], others);
}

std::vector<ModuleExcess> ExcessOf(const Run& run, uint32_t late, TimesOf times_of) {
  return ExcessOf(run, late, TimesOfAll(run, times_of));
}

// Kernels that begin in counted steps.
TimesByName TimesOfKernels(const Trace& trace, const RankWaterfall& waterfall) {
  const std::vector<Step>& steps = waterfall.steps.list;
  // A search by text for each kernel, of each rank and for each sentence, was a fifth of the report
  // of 64 ranks.
  std::vector<std::optional<int64_t>> by_name(trace.dictionary.strings() + 1);
  auto step = steps.begin();
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    while (step != steps.end() && step->end <= span.start) ++step;
    if (step == steps.end()) break;
    if (span.table != DeviceSpan::Table::kKernel || span.start < step->start || step->warm_up) {
      continue;
    }
    auto& ns = by_name[std::min<size_t>(span.name, by_name.size() - 1)];
    ns = ns.value_or(0) + span.end - span.start;
  }
  TimesByName times;
  for (uint32_t name = 0; name < by_name.size(); ++name) {
    if (by_name[name]) times[trace.dictionary.String(name)] += *by_name[name];
  }
  for (auto& [name, ns] : times) ns /= static_cast<int64_t>(waterfall.counted);
  return times;
}

}  // namespace

std::vector<ModuleExcess> ExcessOfKernels(const Run& run, uint32_t trace) {
  struct Times {
    std::vector<TimesByName> by_trace;
  };
  const Times& all =
      run.memo.Get<Times>([&run] { return Times{TimesOfAll(run, &TimesOfKernels)}; });
  return ExcessOf(run, trace, all.by_trace);
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
