#include "collector/facts/causes/waterfall.h"

#include <algorithm>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/explained_time.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/steps.h"
#include "collector/trace/file_notes.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// A loader before the first kernel, or a host that works on after the last, is part of it.
StepList TheWholeTrace(const Trace& trace, const DeviceSpans& spans) {
  int64_t first = trace.first_ns, last = trace.last_ns;
  for (const DeviceSpan& span : spans) {
    first = std::min(first, span.start);
    last = std::max(last, span.end);
  }
  StepList steps;
  if (last > first) steps.list.push_back({0, first, last, false});
  return steps;
}

StepList StepsOrAll(const Trace& trace, const DeviceSpans& spans) {
  StepList steps = DetectSteps(trace);
  steps.list = StepsOnDevice(trace).list;
  if (!steps.list.empty() || spans.empty()) return steps;
  return TheWholeTrace(trace, spans);
}

// Says what its host did: operators, calls of CUDA, or what the agent saw of the framework.
bool ShowsItsHost(const Trace& trace) {
  if (!HasStarts(trace) || trace.origin == TraceOrigin::kMemory) return false;
  return trace.operators.size() + trace.api_calls.size() + trace.python_calls.size() > 0 ||
         !RangesIn(trace, kModuleDomain).empty() || !RangesIn(trace, kPhaseDomain).empty();
}

void SplitDeviceTime(const Trace& trace, const std::vector<Interval>& waits,
                     const std::vector<Step>& steps, std::vector<CauseTimes>* times) {
  times->assign(steps.size(), CauseTimes{});
  const Step* step = steps.data();
  const Step* const none = step + steps.size();
  CauseTimes* of_step = times->data();
  // Pieces come in the order of time; what lies between two steps is nobody's.
  SweepDevice(trace, waits, steps.front().start, steps.back().end,
              [&, none](Cause cause, int64_t start, int64_t end, uint32_t) {
                for (; step != none && step->end <= start; ++step) ++of_step;
                if (step != none && step->start <= start && end <= step->end) {
                  (*of_step)[static_cast<size_t>(cause)] += end - start;
                  return;
                }
                for (size_t i = 0; step + i != none && step[i].start < end; ++i) {
                  of_step[i][static_cast<size_t>(cause)] +=
                      std::min(end, step[i].end) - std::max(start, step[i].start);
                }
              });
}

// For a rank that used no device.
void SplitHostTime(const Trace& trace, const HostCommunication& communication,
                   const std::vector<Step>& steps, std::vector<CauseTimes>* times) {
  PieceCursor pieces(ExplainHost(trace, communication).Take());
  times->assign(steps.size(), CauseTimes{});
  for (size_t i = 0; i < steps.size(); ++i) {
    pieces.Split(steps[i].start, steps[i].end, Cause::kHost,
                 [&](int64_t start, int64_t end, Cause cause) {
                   (*times)[i][static_cast<size_t>(cause)] += end - start;
                 });
  }
}

RankWaterfall Explain(const Trace& trace, const std::vector<Interval>& waits,
                      const HostCommunication& communication, StepList steps) {
  const DeviceSpans& spans = DeviceTimeline(trace);
  RankWaterfall waterfall;
  waterfall.steps = std::move(steps);
  const std::vector<Step>& list = waterfall.steps.list;
  if (list.empty()) return waterfall;
  waterfall.host_ahead = StepsOnDevice(trace).host_ahead;
  waterfall.on_host = spans.empty();
  if (waterfall.on_host) {
    SplitHostTime(trace, communication, list, &waterfall.times);
  } else {
    SplitDeviceTime(trace, waits, list, &waterfall.times);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].warm_up) continue;
    ++waterfall.counted;
    waterfall.mean_step += list[i].length();
    for (size_t c = 0; c < kCauses; ++c) waterfall.mean[c] += waterfall.times[i][c];
  }
  const auto counted = static_cast<int64_t>(waterfall.counted);
  waterfall.mean_step /= counted;
  for (int64_t& ns : waterfall.mean) ns /= counted;
  return waterfall;
}

// What several ranks share is matched by one thread for the most part. Another finds their steps
// meanwhile.
void MatchAndFindSteps(const Run& run) {
  ForEachAtOnce(2, [&run](size_t i) {
    if (i == 0) {
      WaitsForOtherRanks(run);
      return;
    }
    for (const Trace& trace : run.traces) {
      if (HasStarts(trace)) StepsOnDevice(trace);
    }
  });
}

}  // namespace

RankWaterfall OnlySteps(const RankWaterfall& waterfall, const std::vector<size_t>& positions) {
  RankWaterfall part = waterfall;
  for (Step& step : part.steps.list) step.warm_up = true;
  for (const size_t i : positions) part.steps.list[i].warm_up = false;
  part.counted = positions.size();
  return part;
}

const std::vector<RankWaterfall>& ComputeWaterfalls(const Run& run) {
  return run.memo.Get<std::vector<RankWaterfall>>([&run] {
    if (run.traces.size() > 1) MatchAndFindSteps(run);
    const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
    const std::vector<HostCommunication> communication = CommunicationOfHosts(run);
    std::vector<RankWaterfall> waterfalls(run.traces.size());
    ForEachTraceAtOnce(run, [&](uint32_t t) {
      const Trace& trace = run.traces[t];
      if (!HasStarts(trace)) return;
      waterfalls[t] =
          Explain(trace, waits[t], communication[t], StepsOrAll(trace, DeviceTimeline(trace)));
    });
    // Beside ranks that train, a process without steps and device is a helper of theirs.
    if (std::ranges::any_of(waterfalls, [](const RankWaterfall& w) { return w.counted > 0; })) {
      return waterfalls;
    }
    for (uint32_t t = 0; t < waterfalls.size(); ++t) {
      const Trace& trace = run.traces[t];
      if (!ShowsItsHost(trace)) continue;
      waterfalls[t] = Explain(trace, waits[t], communication[t], TheWholeTrace(trace, {}));
    }
    return waterfalls;
  });
}

}  // namespace ranktap::collector
