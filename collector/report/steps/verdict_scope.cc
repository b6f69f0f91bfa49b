#include "collector/report/steps/verdict_scope.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"
#include "collector/trace/file_notes.h"
#include "collector/trace/group_calls.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kNoSteps = "no steps were found";

// Ranks, of which one may have several traces: windows one after the other.
class RankCount {
 public:
  void Add(const Trace& trace) {
    if (trace.info.rank) {
      named_.insert(*trace.info.rank);
    } else {
      ++unnamed_;
    }
  }
  size_t count() const { return named_.size() + unnamed_; }

 private:
  std::set<uint32_t> named_;
  size_t unnamed_ = 0;
};

// "device 0 NVIDIA H100" of one, "8 devices (NVIDIA H100)" of several.
std::string WhichDevices(const Run& run) {
  std::set<std::string> kinds;
  size_t devices = 0;
  std::string only;
  for (const Trace& trace : run.traces) {
    const std::string& device = SummarizeRank(trace).device;
    if (device.empty()) continue;
    ++devices;
    only = "device " + device;
    const size_t at = device.find(' ');
    if (at + 1 < device.size() && at != device.npos) kinds.insert(device.substr(at + 1));
  }
  while (only.ends_with(' ')) only.pop_back();  // a device without a name
  if (devices <= 1) return only;
  if (kinds.empty()) return Counted(devices, "device");
  std::string names;
  for (const std::string& kind : kinds) names += (names.empty() ? "" : ", ") + kind;
  return fmt::format("{} ({})", Counted(devices, "device"), names);
}

}  // namespace

bool AnythingRanOnADevice(const Run& run) {
  return std::any_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    return trace.kernels.size() + trace.copies.size() + trace.memsets.size() +
               trace.graph_launches.size() >
           0;
  });
}

std::string WhyNoTimes(const Run& run) {
  // Beside others' times it is a rank without a verdict.
  const bool is_untimed = std::ranges::all_of(run.traces, [](const Trace& trace) {
    return !HasStarts(trace) || trace.origin == TraceOrigin::kMemory;
  });
  for (const Trace& trace : run.traces) {
    if (GroupCallsOf(trace).is_dump) {
      return "a dump of PyTorch's Flight Recorder tells which calls a rank entered, and no "
             "durations; "
             "report FILES hang reads it";
    }
    if (is_untimed && HasNote(trace, kNodesWithoutStart)) {
      return fmt::format(
          "the nodes of {} have no start, so what ran at once, when a device was idle and which "
          "rank was late is not known",
          RankName(trace));
    }
    if (!is_untimed || trace.origin != TraceOrigin::kExecution) continue;
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

std::string WhichSteps(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  RankCount with_steps, whole;
  size_t counted = 0, warm_up = 0;
  std::set<std::string> sources;
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    const StepList& steps = waterfalls[t].steps;
    if (waterfalls[t].counted == 0) continue;
    (steps.source.empty() ? whole : with_steps).Add(run.traces[t]);
    if (steps.source.empty()) continue;
    sources.insert(steps.source);
    counted += waterfalls[t].counted;
    warm_up += steps.list.size() - waterfalls[t].counted;
  }
  std::string text;
  if (with_steps.count() > 0) {
    text =
        fmt::format("{} of {} by ", Counted(counted, "step"), Counted(with_steps.count(), "rank"));
    for (const std::string& source : sources) {
      text += (&source == &*sources.begin() ? "" : "; ") + source;
    }
    if (warm_up > 0) text += fmt::format("; left out: {} of warm-up", warm_up);
  }
  if (whole.count() == 0) return text;
  return fmt::format("{}{}{}: all of the time of {} counts as one", text, text.empty() ? "" : "; ",
                     kNoSteps, Counted(whole.count(), "rank"));
}

std::string WhatIsCovered(const Run& run) {
  std::string text = WhichSteps(run);
  if (text.empty()) return text;
  if (!text.starts_with(kNoSteps)) text.insert(0, "figures are of ");
  const std::string devices = WhichDevices(run);
  return devices.empty() ? text : text + ", on " + devices;
}

std::string HowLittle(const Run& run, const std::vector<RankWaterfall>& waterfalls) {
  int64_t covered = 0, recorded = 0;
  size_t steps = 0, ranks = 0;
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    const std::vector<Step>& list = waterfalls[t].steps.list;
    if (waterfalls[t].counted == 0 || waterfalls[t].steps.source.empty()) continue;
    if (run.traces[t].dropped_before) continue;  // when its first kept event was is not known
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
