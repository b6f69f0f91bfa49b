// The graph of a run: what each host thread, stream, collective and loader of all ranks waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/facts/numbers/interval_union.h"
#include "collector/facts/replay/host_lane.h"
#include "collector/facts/replay/timed_graph.h"
#include "collector/facts/steps.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// When a step ended: the last of these nodes to end.
struct StepEnd {
  int64_t number = 0;
  bool counted = false;  // no warm-up and not disturbed; the first of the list only begins the next
  std::vector<uint32_t> nodes;  // ascending
  // Of the first of the list: the work with which the next step begins, where its device began
  // after the host (StepsOnDevice); kNone.
  uint32_t first_work = kNone;
};

// A time in which the thread of a rank's steps waited, on the rank's own clock.
struct ThreadWait {
  int64_t begin = 0, end = 0;
  uint32_t after = kNone;  // node: it returned
};

// More workers of a loader are not predicted.
inline constexpr size_t kMostWorkers = 16;

struct JobGraph {
  TimedGraph graph;
  std::vector<HostLane> lanes;                 // host threads, of trace after trace
  std::vector<uint32_t> main_lane;             // by trace: of the thread of the steps; kNone
  std::vector<std::vector<StepEnd>> steps;     // by trace, by number
  std::vector<std::vector<ThreadWait>> waits;  // by trace, by begin, disjoint
  // Of all devices within the steps: when nothing ran, and how much of it only a kept gap explains.
  int64_t idle_ns = 0, kept_gap_ns = 0;
  size_t disturbed = 0;  // steps in which something else had a rank's CPU; they are not counted
  // By trace: the batches that the thread of its steps waited for, in their order.
  std::vector<std::vector<uint32_t>> batches;
  // Why an edge that should be there is not: "messages whose other rank is not known".
  std::vector<std::string> missing;
};

// Worked out once and kept in the run's memo.
const JobGraph& JobGraphOf(const Run& run);

// When a step of a rank ended; `before`: when the last one did.
int64_t EndOf(const StepEnd& step, const Replayed& times, int64_t before);
// The lengths of counted steps, of all ranks.
std::vector<int64_t> StepLengths(const JobGraph& job, const Replayed& times);
// The same as the trace has them, without last_edge.
Replayed TimesInTrace(const TimedGraph& graph);

}  // namespace ranktap::collector
