#include "collector/analysis/timed_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace ranktap::collector {
namespace {

bool HasOperators(const Trace& trace, const Step& step) {
  const Column<int64_t>& starts = trace.operators.start;
  const int64_t* const first = std::lower_bound(starts.begin(), starts.end(), step.start);
  return first != starts.end() && *first < step.end;
}

}  // namespace

bool TimedSteps::Has(int64_t time) const {
  const auto after = std::upper_bound(list.begin(), list.end(), time,
                                      [](int64_t t, const Step& step) { return t < step.start; });
  return after != list.begin() && time < std::prev(after)->end;
}

int64_t TimedSteps::mean_ns() const {
  int64_t sum = 0;
  for (const Step& step : list) sum += step.length();
  return list.empty() ? 0 : sum / static_cast<int64_t>(list.size());
}

// The first operators of the step after a window may be recorded too; it is left out with them.
Result<TimedSteps> SelectTimedSteps(const Trace& trace, std::optional<int64_t> wanted) {
  const StepList& steps = DetectSteps(trace);
  TimedSteps timed;
  std::vector<Step> steady;
  bool found_recorded = false;
  for (const Step& step : steps.list) {
    const bool recorded = HasOperators(trace, step);
    if (recorded && !found_recorded) timed.profiled = step.number;
    found_recorded |= recorded;
    if (!recorded && !step.warm_up) steady.push_back(step);
    if (wanted && step.number == *wanted) timed.list = {step};
  }
  if (wanted) {
    timed.profiled = *wanted;
    if (timed.list.empty()) {
      return Failure{fmt::format("there is no step {} in the trace; steps lists them", *wanted)};
    }
  } else {
    timed.recorded = steady.empty() && found_recorded;
    timed.list = steady.empty() ? steps.list : std::move(steady);
  }
  if (timed.list.empty()) return Failure{"no training step was seen, so there are no latencies"};
  return timed;
}

int64_t CountRecordedSteps(const Trace& trace, const std::vector<OpPlace>& places) {
  std::vector<int64_t> backward;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].pass == Pass::kBackward) backward.push_back(trace.operators.start[i]);
  }
  int64_t steps = 0;
  for (const Step& step : DetectSteps(trace).list) {
    const auto first = std::lower_bound(backward.begin(), backward.end(), step.start);
    steps += first != backward.end() && *first < step.end ? 1 : 0;
  }
  return std::max<int64_t>(1, steps);
}

}  // namespace ranktap::collector
