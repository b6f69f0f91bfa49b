#include "collector/facts/pace.h"

#include <algorithm>

#include "collector/facts/numbers/describe.h"
#include "collector/facts/shared_clock.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

// When the first of all ranks began each instance that all have.
Starts FirstStarts(const std::vector<Starts>& by_trace) {
  Starts first;
  for (const auto& [number, start] : by_trace[0]) {
    int64_t earliest = start;
    const bool is_shared = std::ranges::all_of(by_trace, [&](const Starts& of) {
      const auto found = of.find(number);
      if (found != of.end()) earliest = std::min(earliest, found->second);
      return found != of.end();
    });
    if (is_shared) first[number] = earliest;
  }
  return first;
}

}  // namespace

Pace PaceOf(const std::vector<Starts>& by_trace) {
  if (by_trace.size() < 2) return {};
  const Starts first_of = FirstStarts(by_trace);
  const std::vector<std::pair<int64_t, int64_t>> shared(first_of.begin(), first_of.end());
  if (shared.size() < 4) return {};
  Pace pace{.is_known = true, .behind = {}};
  const size_t quarter = shared.size() / 4;
  for (uint32_t t = 0; t < by_trace.size(); ++t) {
    std::vector<double> early, late;
    const auto lag = [&](size_t i) {
      return static_cast<double>(by_trace[t].at(shared[i].first) - shared[i].second);
    };
    for (size_t i = 0; i < quarter; ++i) {
      early.push_back(lag(i));
      late.push_back(lag(shared.size() - 1 - i));
    }
    const double apart = static_cast<double>(shared.size() - quarter);
    const double behind = (Median(std::move(late)) - Median(std::move(early))) / apart;
    if (behind >= 1 && (!pace.behind || behind > pace.behind->ns)) pace.behind = {t, behind};
  }
  return pace;
}

Pace PaceOfSteps(const Run& run, const std::vector<uint32_t>& traces) {
  const SharedClock& clock = SharedClockOf(run);
  std::vector<Starts> by_trace;
  for (const uint32_t t : traces) {
    Starts starts;
    int64_t origin = 0;
    for (const Step& step : DetectSteps(run.traces[t]).list) {
      if (step.warm_up) continue;
      if (!clock.is_known() && starts.empty()) origin = step.start;
      starts.try_emplace(step.number, clock.At(t, step.start) - origin);
    }
    by_trace.push_back(std::move(starts));
  }
  Pace pace = PaceOf(by_trace);
  if (pace.behind) pace.behind->trace = traces[pace.behind->trace];
  return pace;
}

}  // namespace ranktap::collector
