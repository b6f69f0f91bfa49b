#include "collector/facts/framework/timed_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "collector/facts/device_steps.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

bool HasOperators(const Trace& trace, const Step& step) {
  const TimeColumn& starts = trace.operators.start;
  const auto first = std::lower_bound(starts.begin(), starts.end(), step.start);
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
  for (const int64_t length : device_ns) sum += length;
  return device_ns.empty() ? 0 : sum / static_cast<int64_t>(device_ns.size());
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
    timed.list = steady.empty() ? steps.list : steady;
  }
  for (size_t i = 0, next = 0; i < steps.list.size(); ++i) {
    if (next == timed.list.size() || timed.list[next].start != steps.list[i].start) continue;
    ++next;
    timed.device_ns.push_back(StepsOnDevice(trace).list[i].length());
  }
  if (timed.list.empty()) return Failure{"no training step was seen, so there are no latencies"};
  return timed;
}

std::vector<bool> RecordedSteps(const Trace& trace, std::span<const int64_t> starts) {
  const std::vector<Step>& steps = DetectSteps(trace).list;
  if (!trace.is_ours()) return std::vector<bool>(steps.size(), true);
  std::vector<ptrdiff_t> counts;
  for (const Step& step : steps) {
    counts.push_back(std::lower_bound(starts.begin(), starts.end(), step.end) -
                     std::lower_bound(starts.begin(), starts.end(), step.start));
  }
  const ptrdiff_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::vector<bool> recorded;
  for (const ptrdiff_t count : counts) recorded.push_back(count > 0 && count * 2 >= most);
  return recorded;
}

int64_t CountRecordedSteps(const Trace& trace, const std::vector<OpPlace>& places) {
  std::vector<int64_t> backward, forward;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].pass == Pass::kBackward) backward.push_back(trace.operators.start[i]);
    if (places[i].pass == Pass::kForward) forward.push_back(trace.operators.start[i]);
  }
  // The program only infers.
  if (backward.empty()) std::swap(backward, forward);
  int64_t steps = 0;
  for (const Step& step : DetectSteps(trace).list) {
    const auto first = std::lower_bound(backward.begin(), backward.end(), step.start);
    steps += first != backward.end() && *first < step.end ? 1 : 0;
  }
  return std::max<int64_t>(1, steps);
}

}  // namespace ranktap::collector
