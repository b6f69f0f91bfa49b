// One host thread as nodes of a graph: what ran between the moments that others depend on or that
// it waited for.
//
//   cuts    point 4        wait 6..9                point 4 ends a node; at 9 it returns
//   nodes   0..4, 4..6,    return at 9 (0 long),    9..
#pragma once

#include <cstdint>
#include <ranges>
#include <vector>

#include "collector/facts/replay/timed_graph.h"
#include "collector/trace/column.h"

namespace ranktap::collector {

class HostLane {
 public:
  HostLane(uint32_t trace, uint16_t writer) : trace_(trace), writer_(writer) {}

  // Each returns the number of the cut. A point: others depend on the thread's having come there.
  uint32_t AddPoint(int64_t time);
  // A point at which it launched work; kNone: it lies before the last one, and AddPoint is for it.
  uint32_t AddLaunch(int64_t time);
  // A wait, of no length where the call returned at once: it might not have.
  uint32_t AddWait(int64_t begin, int64_t end);

  // From `first`, by the run's common clock. After it Before(), After() and Launching() hold, until
  // Forget().
  void Build(int64_t first, int64_t last, GraphBuilder* builder);
  // The node that ends at the cut.
  uint32_t Before(uint32_t cut) const { return before_[cut]; }
  // Where the thread returned from the wait.
  uint32_t After(uint32_t cut) const { return after_[cut]; }
  // The node that ends with the launch.
  uint32_t Launching(uint32_t launch) const { return launching_[launch]; }
  void Forget();

  uint32_t trace() const { return trace_; }
  uint16_t writer() const { return writer_; }
  // By start.
  std::ranges::iota_view<uint32_t, uint32_t> nodes() const { return {first_, last_}; }

 private:
  struct Cut {
    int64_t begin = 0, end = 0;
    bool waits = false;
    uint32_t number = 0;
  };
  uint32_t Add(int64_t begin, int64_t end, bool waits);
  void SortCuts();

  uint32_t trace_;
  uint16_t writer_;
  std::vector<Cut> cuts_;
  Column<int64_t> launches_;  // their times, ascending
  std::vector<uint32_t> before_, after_, launching_;
  uint32_t first_ = 0, last_ = 0;  // nodes
};

}  // namespace ranktap::collector
