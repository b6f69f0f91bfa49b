#include "collector/facts/causes/pass_places.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/launched_work.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/steps.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kNode = "autograd::engine::evaluate_function: ";

using Times = TimesByName;

bool IsCounted(const RankWaterfall& waterfall, int64_t time) {
  const int64_t step = StepIndexAt(waterfall.steps, time);
  return step >= 0 && !waterfall.steps.list[static_cast<size_t>(step)].warm_up;
}

std::string MoreThanHalf(const Times& times) {
  int64_t all = 0;
  for (const auto& [name, ns] : times) all += ns;
  const auto most = std::ranges::max_element(
      times, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (times.size() < 2) return "";  // it says no more than the pass
  return most == times.end() || most->second * 2 <= all ? "" : std::string(most->first);
}

// Of each module's span that of the modules right inside of it is taken off.
template <typename Length>
Times OwnTimes(const Trace& trace, const RankWaterfall& waterfall, Length length_of) {
  struct Open {
    int64_t end = 0;
    uint16_t depth = 0;
    std::string_view name;
  };
  Times own;
  std::map<uint16_t, std::vector<Open>> open;  // by thread
  for (const ModuleSpan& span : ModuleSpans(trace)) {
    if (!IsCounted(waterfall, span.start)) continue;
    std::vector<Open>& around = open[span.writer];
    while (!around.empty() &&
           (around.back().depth >= span.depth || around.back().end <= span.start)) {
      around.pop_back();
    }
    const int64_t length = length_of(span);
    if (!around.empty()) own[around.back().name] -= length;
    const std::string_view name = trace.dictionary.String(span.name);
    own[name] += length;
    around.push_back({span.end, span.depth, name});
  }
  return own;
}

std::string MostOfForward(const Trace& trace, const RankWaterfall& waterfall) {
  const Times own =
      OwnTimes(trace, waterfall, [](const ModuleSpan& span) { return span.end - span.start; });
  const int64_t compiles =
      Length(Intersection(PhaseIntervals(trace, proto::kCompilationPhase), ForwardPasses(trace)));
  int64_t all = 0;
  for (const auto& [name, ns] : own) all += ns;
  return compiles * 2 > all ? "Dynamo's compilations" : MoreThanHalf(own);
}

// `steps`: those of which it has any.
Times NodeTimes(const Trace& trace, const RankWaterfall& waterfall, std::set<int64_t>* steps) {
  Times nodes;
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = trace.dictionary.String(ops.name[i]);
    // Where DDP's hooks run and wait for other ranks: no part of the model.
    if (name.ends_with("AccumulateGrad")) continue;
    if (!name.starts_with(kNode) || !IsCounted(waterfall, ops.start[i])) continue;
    nodes[name.substr(kNode.size())] += ops.end[i] - ops.start[i];
    steps->insert(StepIndexAt(waterfall.steps, ops.start[i]));
  }
  return nodes;
}

void Divide(Times* times, size_t steps) {
  for (auto& [name, ns] : *times) ns /= static_cast<int64_t>(std::max<size_t>(steps, 1));
}

std::string MostOfBackward(const Trace& trace, const RankWaterfall& waterfall) {
  std::set<int64_t> steps;
  return MoreThanHalf(NodeTimes(trace, waterfall, &steps));
}

}  // namespace

PassPlaces PlacesInPasses(const Trace& trace, const RankWaterfall& waterfall) {
  return {MostOfForward(trace, waterfall), MostOfBackward(trace, waterfall)};
}

TimesByName TimesOfModules(const Trace& trace, const RankWaterfall& waterfall) {
  Times own;
  if (waterfall.on_host) {
    own = OwnTimes(trace, waterfall, [](const ModuleSpan& span) { return span.end - span.start; });
  } else {
    std::optional<LaunchedWork> work;  // not where there are no modules
    own = OwnTimes(trace, waterfall, [&](const ModuleSpan& span) {
      if (!work) work.emplace(trace);
      return work->Between(span.writer, span.start, span.end);
    });
  }
  Divide(&own, waterfall.counted);
  return own;
}

TimesByName TimesOfNodes(const Trace& trace, const RankWaterfall& waterfall) {
  std::set<int64_t> steps;
  Times nodes = NodeTimes(trace, waterfall, &steps);
  Divide(&nodes, steps.size());
  return nodes;
}

}  // namespace ranktap::collector
