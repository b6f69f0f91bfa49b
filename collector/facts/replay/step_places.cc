#include "collector/facts/replay/step_places.h"

#include <algorithm>
#include <map>
#include <optional>

#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/samples/host_phases.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

StepPlaces FindPlaces(const Run& run) {
  StepPlaces places;
  const JobGraph& job = JobGraphOf(run);
  std::map<std::string, uint32_t> numbers;
  const size_t traces = run.traces.size();
  places.pieces.resize(traces);
  places.counted.assign(traces, 0);
  places.ns.resize(traces);
  for (uint32_t t = 0; t < traces; ++t) {
    const Trace& trace = run.traces[t];
    std::vector<Interval> waits;
    for (const ThreadWait& wait : job.waits[t]) waits.emplace_back(wait.begin, wait.end);
    waits = Merged(std::move(waits));
    const HostPhases phases(trace);
    std::map<uint32_t, int64_t> ns;
    for (const Step& step : DetectSteps(trace).list) {
      places.counted[t] += step.warm_up ? 0 : 1;
      for (const Interval& ran : Difference({{step.start, step.end}}, waits)) {
        phases.Split(
            ran.first, ran.second,
            [&](std::optional<Cause> cause, std::string_view gap, int64_t begin, int64_t end) {
              const std::string name = cause ? std::string(NameOf(*cause))
                                             : std::string(gap.empty() ? "in no phase" : gap);
              const auto number = static_cast<uint32_t>(numbers.size());
              const uint32_t place = numbers.try_emplace(name, number).first->second;
              places.pieces[t].push_back({begin, end, place});
              if (!step.warm_up) ns[place] += end - begin;
            });
      }
    }
    for (const auto& [place, sum] : ns) {
      if (places.ns[t].size() <= place) places.ns[t].resize(place + 1);
      places.ns[t][place] = sum / static_cast<int64_t>(std::max<size_t>(places.counted[t], 1));
    }
  }
  places.names.resize(numbers.size());
  for (const auto& [name, number] : numbers) places.names[number] = name;
  for (std::vector<int64_t>& ns : places.ns) ns.resize(numbers.size());
  return places;
}

}  // namespace

uint32_t StepPlaces::At(uint32_t trace, int64_t time) const {
  const std::vector<PlacedTime>& of = pieces[trace];
  const auto at = std::ranges::upper_bound(of, time, {}, &PlacedTime::end);
  return at == of.end() || at->begin > time ? kNone : at->place;
}

const StepPlaces& StepPlacesOf(const Run& run) {
  return run.memo.Get<StepPlaces>([&run] { return FindPlaces(run); });
}

}  // namespace ranktap::collector
