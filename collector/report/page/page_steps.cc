#include <algorithm>

#include "collector/facts/causes/waterfall.h"
#include "collector/file/json.h"
#include "collector/report/cells.h"
#include "collector/report/claims/transfer.h"
#include "collector/report/page/page_pictures.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostSteps = 200'000;  // of all ranks, with their causes

int64_t Us(int64_t ns) { return (ns + 500) / 1'000; }

Json CausesOf(const RankWaterfall& rank, bool tells_waiting) {
  Json causes = Json::object();
  for (size_t c = 0; c < kCauses; ++c) {
    const auto has = [c](const CauseTimes& times) { return times[c] != 0; };
    if (std::none_of(rank.times.begin(), rank.times.end(), has)) continue;
    const std::string name(SaidName(static_cast<Cause>(c), tells_waiting));
    Json& values = causes[name] = Json::array();
    for (const CauseTimes& times : rank.times) values.push_back(Us(times[c]));
  }
  return causes;
}

size_t CountSteps(const Run& run) {
  size_t steps = 0;
  for (const RankWaterfall& rank : ComputeWaterfalls(run)) steps += rank.steps.list.size();
  return steps;
}

}  // namespace

Json PageSteps(const Run& run) {
  Json ranks = Json::array();
  const bool has_causes = CountSteps(run) <= kMostSteps;
  const int64_t first = FirstEvent(run);
  for (size_t t = 0; t < run.traces.size(); ++t) {
    const RankWaterfall& rank = ComputeWaterfalls(run)[t];
    if (rank.steps.source.empty()) continue;
    Json of = {
        {"name", RankName(run.traces[t])}, {"trace", t},          {"numbers", Json::array()},
        {"start_us", Json::array()},       {"us", Json::array()}, {"warm_up", Json::array()}};
    of["rank"] = run.traces[t].info.rank;
    for (size_t i = 0; i < rank.steps.list.size(); ++i) {
      const Step& step = rank.steps.list[i];
      of["numbers"].push_back(step.number);
      of["start_us"].push_back(Us(step.start - first));
      of["us"].push_back(Us(step.length()));
      if (step.warm_up) of["warm_up"].push_back(i);
    }
    of["causes"] = has_causes ? CausesOf(rank, TellsWaiting(run)) : Json::object();
    ranks.push_back(std::move(of));
  }
  return ranks;
}

}  // namespace ranktap::collector
