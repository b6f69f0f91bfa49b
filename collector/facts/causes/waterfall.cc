#include "collector/facts/causes/waterfall.h"

#include <algorithm>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/explained_time.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"

namespace ranktap::collector {
namespace {

// Whether operators have times, and no call of CUDA says that there was a device.
bool RanOnHostAlone(const Trace& trace) {
  const bool has_times = trace.is_ours() || trace.origin == TraceOrigin::kKineto;
  return has_times && trace.operators.size() > 0 && trace.api_calls.size() == 0;
}

// Without steps all that ran on devices is one; in a program of the host's alone all operators.
StepList StepsOrAll(const Trace& trace, const std::vector<DeviceSpan>& spans) {
  StepList steps = DetectSteps(trace);
  steps.list = StepsOnDevice(trace).list;
  if (!steps.list.empty()) return steps;
  if (spans.empty()) {
    const Operators& ops = trace.operators;
    if (!RanOnHostAlone(trace)) return steps;
    const int64_t last = *std::max_element(ops.end.begin(), ops.end.end());
    if (last > ops.start[0]) steps.list.push_back({0, ops.start[0], last, false});
    return steps;
  }
  int64_t last = spans.front().end;
  for (const DeviceSpan& span : spans) last = std::max(last, span.end);
  steps.list.push_back({0, spans.front().start, last, false});
  return steps;
}

void SplitDeviceTime(const Trace& trace, const std::vector<Interval>& waits,
                     const std::vector<Step>& steps, std::vector<CauseTimes>* times) {
  times->assign(steps.size(), CauseTimes{});
  size_t step = 0;
  // Pieces come in the order of time; what lies between two steps is nobody's.
  SweepDevice(trace, waits, steps.front().start, steps.back().end,
              [&](Cause cause, int64_t start, int64_t end, uint32_t) {
                while (step < steps.size() && steps[step].end <= start) ++step;
                for (size_t i = step; i < steps.size() && steps[i].start < end; ++i) {
                  (*times)[i][static_cast<size_t>(cause)] +=
                      std::min(end, steps[i].end) - std::max(start, steps[i].start);
                }
              });
}

// For a rank that used no device.
void SplitHostTime(const Trace& trace, const HostCommunication& communication,
                   const std::vector<Step>& steps, std::vector<CauseTimes>* times) {
  Explained explained = PausesOfHost(trace);
  explained.Add(Cause::kWait, communication.waits);
  explained.Add(Cause::kTransfer, communication.transfers);
  AddPasses(trace, &explained);
  PieceCursor pieces(explained.Take());
  times->assign(steps.size(), CauseTimes{});
  for (size_t i = 0; i < steps.size(); ++i) {
    pieces.Split(steps[i].start, steps[i].end, Cause::kHost,
                 [&](int64_t start, int64_t end, Cause cause) {
                   (*times)[i][static_cast<size_t>(cause)] += end - start;
                 });
  }
}

RankWaterfall Explain(const Trace& trace, const std::vector<Interval>& waits,
                      const HostCommunication& communication) {
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  RankWaterfall waterfall;
  waterfall.steps = StepsOrAll(trace, spans);
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

}  // namespace

const std::vector<RankWaterfall>& ComputeWaterfalls(const Run& run) {
  return run.memo.Get<std::vector<RankWaterfall>>([&run] {
    const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
    const std::vector<HostCommunication> communication = CommunicationOfHosts(run);
    std::vector<RankWaterfall> waterfalls(run.traces.size());
    ForEachTraceAtOnce(run, [&](uint32_t t) {
      waterfalls[t] = Explain(run.traces[t], waits[t], communication[t]);
    });
    return waterfalls;
  });
}

}  // namespace ranktap::collector
