#include "collector/report/steps/model_calls.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {

ModelCalls CallsOf(const Trace& trace, const StepList& steps) {
  const std::vector<Interval> forwards = ForwardPasses(trace);
  ModelCalls found{.made = steps.list.size()};
  int64_t idle = 0, pauses = 0;
  for (const Step& step : steps.list) {
    if (step.warm_up) continue;
    const int64_t computes = Length(Within(forwards, step.start, step.end));
    found.calls.Add(computes);
    found.all_ns += step.length();
    idle += step.length() - computes;
    pauses += step.length() > computes;
  }
  found.pause_ns = idle / std::max<int64_t>(pauses, 1);
  return found;
}

std::string DescribeCalls(const Run& run) {
  ModelCalls most;
  for (const Trace& trace : run.traces) {
    const StepList& steps = DetectSteps(trace);
    if (steps.list.empty()) continue;
    if (!steps.is_call) return "";
    ModelCalls calls = CallsOf(trace, steps);
    if (calls.calls.count > most.calls.count) most = std::move(calls);
  }
  if (most.calls.count == 0) return "";
  const int64_t idle = most.all_ns - most.calls.total_ns;
  return fmt::format(
      "The model is called {}: a call takes {} (p50), {} (p99), and {} pass between two, {} of the "
      "time.",
      Counted(most.made, "time"), FormatNs(most.calls.median_ns()), FormatNs(most.calls.p99_ns()),
      FormatNs(most.pause_ns), FormatShare(idle, most.all_ns));
}

}  // namespace ranktap::collector
