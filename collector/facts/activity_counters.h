// Curves over time that follow from a trace's events: what timelines show as counter tracks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct ActivityCounter {
  struct Point {
    int64_t time = 0;  // the value holds from here to the next point
    double value = 0;
  };
  std::string name;
  uint32_t device = kNone;  // kNone: of the process
  std::vector<Point> points;
};

// Each device has:
//   "gpu_usage_ratio"  share of the time in which it does anything (MegEngine's), in 200 windows
//                      from the trace's first device work to the end of its last
//   "pending work"     kernels, copies and memsets that were launched and have not begun; work
//                      without a launch record is left out
// Each memory whose allocations are recorded has:
//   "alive tensors"    blocks that were allocated and not given back since recording began
// A curve has at most 4,000 points. A longer one has the most of each of 2,000 equal times.
std::vector<ActivityCounter> ActivityCounters(const Trace& trace);

}  // namespace ranktap::collector
