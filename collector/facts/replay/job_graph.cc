#include "collector/facts/replay/job_graph.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>

#include "collector/facts/device_steps.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/replay/job_links.h"
#include "collector/facts/samples/host_phases.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/stream_numbers.h"

namespace ranktap::collector {
namespace {

// The cuts at which each step of a rank ends; the first begins the first step.
struct StepCuts {
  std::vector<Moment> cuts;  // empty: the steps are the device's
};

StepCuts CutSteps(uint32_t t, const StepList& steps, JobLinks* links) {
  StepCuts of;
  const uint32_t lane = links->job().main_lane[t];
  if (lane == kNone || steps.on_device || steps.list.empty()) return of;
  of.cuts.push_back(links->Point(lane, steps.list.front().start));
  for (const Step& step : steps.list) of.cuts.push_back(links->Point(lane, step.end));
  return of;
}

// The last work on each stream that each step launched.
std::vector<std::vector<uint32_t>> LastWorkOfSteps(const Trace& trace, const StepList& steps,
                                                   const WorkNodes& work) {
  struct Last {
    uint32_t stream = 0, span = 0;
    int64_t end = 0;
  };
  std::vector<std::vector<Last>> last(steps.list.size());
  StepFinder finder(trace, steps);
  StreamNumbers streams;
  uint32_t place = 0;
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    const uint32_t i = place++;
    const int64_t step = finder.IndexOf(span);
    if (step < 0) continue;
    const Last now{streams.Of(span), i, span.end};
    std::vector<Last>& of = last[static_cast<size_t>(step)];
    const auto at = std::ranges::find(of, now.stream, &Last::stream);
    if (at == of.end()) {
      of.push_back(now);
    } else if (now.end >= at->end) {
      *at = now;
    }
  }
  std::vector<std::vector<uint32_t>> nodes(last.size());
  for (size_t step = 0; step < last.size(); ++step) {
    std::ranges::sort(last[step], {}, [&](const Last& of) { return streams[of.stream]; });
    for (const Last& of : last[step]) nodes[step].push_back(work.Tail(of.span));
  }
  return nodes;
}

// When the first step begins, as StepsOnDevice has it: with the host, when the work before it has
// ended, or with its own first work.
StepEnd BeginOfSteps(const Trace& trace, const StepList& steps, uint32_t host,
                     const WorkNodes& work) {
  StepEnd begin{-1, false, {host}};
  const int64_t time = StepsOnDevice(trace).list.front().start;
  if (time <= steps.list.front().start) return begin;
  const DeviceSpans& spans = DeviceTimeline(trace);
  for (uint32_t i = 0; i < spans.size(); ++i) {
    if (spans[i].end == time) {
      begin.nodes.push_back(work.Tail(i));
      std::ranges::sort(begin.nodes);
      break;
    }
    if (spans[i].start >= time) {
      begin.first_work = work.Tail(i);
      break;
    }
  }
  return begin;
}

// The numbers of steps in which a rank's thread was ready to run for 5 % of the time and had no
// CPU: they say what else the machine did. None where few others would be left: of 200 steps 11,
// which were too uneven for an answer.
std::set<int64_t> DisturbedSteps(const Run& run) {
  constexpr double kMostQueued = 0.05;
  constexpr size_t kFewestLeft = 10, kFewestOf = 4;
  std::set<int64_t> disturbed, all;
  for (const Trace& trace : run.traces) {
    const HostSamples& samples = SamplesOf(trace);
    for (const Step& step : DetectSteps(trace).list) {
      if (step.warm_up) continue;
      all.insert(step.number);
      double queued = 0;
      samples.ForEachOfMain(step.start, step.end, [&](const HostSample& sample, int64_t ns) {
        const auto length = static_cast<double>(std::max<int64_t>(sample.end - sample.start, 1));
        queued += static_cast<double>(sample.queued_ns) * static_cast<double>(ns) / length;
      });
      if (queued > kMostQueued * static_cast<double>(step.length())) disturbed.insert(step.number);
    }
  }
  const size_t fewest = std::max(kFewestLeft, all.size() / kFewestOf);
  if (all.size() - disturbed.size() < fewest) disturbed.clear();
  return disturbed;
}

// So that a change of one phase is that of its own nodes.
void CutPhases(uint32_t t, const StepList& steps, JobLinks* links) {
  const uint32_t lane = links->job().main_lane[t];
  if (lane == kNone) return;
  const HostPhases phases(links->run().traces[t]);
  for (const Step& step : steps.list) {
    phases.Split(step.start, step.end,
                 [&](std::optional<Cause>, std::string_view, int64_t begin, int64_t) {
                   links->Point(lane, begin);
                 });
  }
}

std::vector<StepEnd> EndSteps(const Trace& trace, const StepList& steps, const StepCuts& cuts,
                              const std::set<int64_t>& disturbed, const JobLinks& links,
                              const WorkNodes& work) {
  std::vector<StepEnd> ends;
  if (steps.list.empty()) return ends;
  const std::vector<std::vector<uint32_t>> last = LastWorkOfSteps(trace, steps, work);
  if (!cuts.cuts.empty()) {
    ends.push_back(BeginOfSteps(trace, steps, links.NodeOf(cuts.cuts[0]), work));
  }
  for (size_t i = 0; i < steps.list.size(); ++i) {
    const int64_t number = steps.list[i].number;
    StepEnd end{number, !steps.list[i].warm_up && !disturbed.contains(number), last[i]};
    if (!cuts.cuts.empty()) end.nodes.push_back(links.NodeOf(cuts.cuts[i + 1]));
    if (!end.nodes.empty()) ends.push_back(std::move(end));
  }
  return ends;
}

// When the rank's devices had nothing to do within its steps, and what of that only gaps of the
// work after it explain.
void AddIdle(uint32_t t, const Trace& trace, const StepList& steps, const JobLinks& links,
             JobGraph* job) {
  const DeviceSpans& spans = DeviceTimeline(trace);
  if (spans.empty() || steps.list.empty()) return;
  const int64_t first = links.At(t, steps.list.front().start);
  const int64_t last = links.At(t, steps.list.back().end);
  struct Idle {
    int64_t begin, end;
    uint32_t before;  // the work
  };
  std::vector<Idle> idle;
  int64_t free = first;
  const auto add = [&](int64_t until, uint32_t before) {
    if (std::min(until, last) > free) idle.push_back({free, std::min(until, last), before});
  };
  const auto size = static_cast<uint32_t>(spans.size());
  for (uint32_t i = 0; i < size; ++i) {
    add(links.At(t, spans[i].start), i);
    free = std::max({free, links.At(t, spans[i].start), links.At(t, spans[i].end)});
  }
  add(last, size);
  const TimedGraph& graph = job->graph;
  int64_t since = INT64_MAX / 2;  // the earliest begin of a gap of the work from `i` on
  uint32_t i = size;
  for (const Idle& one : std::views::reverse(idle)) {
    for (; i > one.before; --i) {
      const uint32_t node = links.work[t].Head(i - 1);
      if (graph.gap[node] > 0) since = std::min(since, graph.start[node] - graph.gap[node]);
    }
    job->idle_ns += one.end - one.begin;
    job->kept_gap_ns += std::max<int64_t>(one.end - std::max(one.begin, since), 0);
  }
}

JobGraph MakeGraph(const Run& run) {
  JobGraph job;
  const size_t traces = run.traces.size();
  job.main_lane.assign(traces, kNone);
  job.waits.resize(traces);
  job.batches.resize(traces);
  job.steps.resize(traces);
  JobLinks links(run, &job);
  size_t work = 0;
  for (const Trace& trace : run.traces) work += DeviceTimeline(trace).size();
  // Of each a node, one of its launch, and few others: without a launch they may be more.
  links.builder().Reserve(2 * work + work / 4);
  std::vector<StepCuts> cuts(traces);
  for (uint32_t t = 0; t < traces; ++t) {
    const uint16_t writer = MainWriter(run.traces[t]);
    if (writer != UINT16_MAX) job.main_lane[t] = links.LaneOf(t, writer);
    cuts[t] = CutSteps(t, DetectSteps(run.traces[t]), &links);
    CutPhases(t, DetectSteps(run.traces[t]), &links);
  }
  AddDeviceMeetings(&links);
  for (uint32_t t = 0; t < traces; ++t) {
    AddDeviceWork(t, &links);
    AddLoader(t, &links);
    AddHandOvers(t, &links);
  }
  AddHostMeetings(&links);
  AddHostMessages(&links);
  links.Build();
  const std::set<int64_t> disturbed = DisturbedSteps(run);
  job.disturbed = disturbed.size();
  for (uint32_t t = 0; t < traces; ++t) {
    const Trace& trace = run.traces[t];
    job.steps[t] = EndSteps(trace, DetectSteps(trace), cuts[t], disturbed, links, links.work[t]);
  }
  job.graph = std::move(links.builder()).Seal();
  for (uint32_t t = 0; t < traces; ++t) {
    AddIdle(t, run.traces[t], DetectSteps(run.traces[t]), links, &job);
  }
  for (HostLane& lane : job.lanes) lane.Forget();
  return job;
}

}  // namespace

const JobGraph& JobGraphOf(const Run& run) {
  return run.memo.Get<JobGraph>([&run] { return MakeGraph(run); });
}

Replayed TimesInTrace(const TimedGraph& graph) {
  Replayed times{graph.start, {}, {}};
  times.end.resize(graph.size());
  for (uint32_t node = 0; node < graph.size(); ++node) times.end[node] = graph.end(node);
  return times;
}

int64_t EndOf(const StepEnd& step, const Replayed& times, int64_t before) {
  if (step.first_work != kNone) return times.begin[step.first_work];
  int64_t end = before;  // a step whose work was done early ends with the one before
  for (const uint32_t node : step.nodes) end = std::max(end, times.end[node]);
  return end;
}

std::vector<int64_t> StepLengths(const JobGraph& job, const Replayed& times) {
  std::vector<int64_t> lengths;
  for (const std::vector<StepEnd>& steps : job.steps) {
    int64_t before = INT64_MIN;
    for (const StepEnd& step : steps) {
      const int64_t end = EndOf(step, times, before);
      if (step.counted && before != INT64_MIN) lengths.push_back(end - before);
      before = end;
    }
  }
  return lengths;
}

}  // namespace ranktap::collector
