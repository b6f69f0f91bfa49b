#include "collector/report/steps/verdict_scope.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/facts/causes/device_sweep.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {

bool AnythingRanOnADevice(const Run& run) {
  return std::any_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    return trace.kernels.size() + trace.copies.size() + trace.memsets.size() +
               trace.graph_launches.size() >
           0;
  });
}

std::string WhyNoTimes(const Run& run) {
  for (const Trace& trace : run.traces) {
    if (trace.origin != TraceOrigin::kExecution) continue;
    return fmt::format(
        "an execution trace has no times, and {} has nothing else; name torch.profiler's file of "
        "the same steps beside it",
        RankName(trace));
  }
  const bool is_memory = std::all_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    return trace.origin == TraceOrigin::kMemory;
  });
  return is_memory && !run.traces.empty()
             ? "a file of the memory profiler says who held memory, and nothing of time"
             : "";
}

std::string HowItRanOut(const Run& run) {
  for (const Trace& trace : run.traces) {
    if (trace.origin != TraceOrigin::kMemory) continue;
    for (const std::string& note : trace.info.notes) {
      if (note.starts_with("out of memory")) return fmt::format("O{}. ", note.substr(1));
    }
  }
  return "";
}

std::string HowLittle(const Run& run, const std::vector<RankWaterfall>& waterfalls) {
  int64_t covered = 0, recorded = 0;
  size_t steps = 0, ranks = 0;
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    const std::vector<Step>& list = waterfalls[t].steps.list;
    if (waterfalls[t].counted == 0 || waterfalls[t].steps.source.empty()) continue;
    ++ranks;
    steps += list.size();
    covered += list.back().end - list.front().start;
    recorded += run.traces[t].last_ns - run.traces[t].first_ns -
                Length(NotRecordedIntervals(run.traces[t]));
  }
  if (ranks == 0 || covered * 10 >= recorded) return "";
  return fmt::format("The {} found are {} of {} that were recorded ({}). ",
                     Counted(steps / ranks, std::string(waterfalls[0].steps.noun())),
                     FormatNs(covered), FormatNs(recorded), FormatShare(covered, recorded));
}

}  // namespace ranktap::collector
