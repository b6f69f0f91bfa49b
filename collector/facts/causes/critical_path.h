// The chain of work that the end of the run waited for, across streams, hosts and ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct PathSegment {
  uint32_t trace = 0;
  Cause cause{};  // kCompute, kTransfer, kMemory, kDataLoading, kSync, kHost, kLatency, kDependency
  uint32_t kernel = kNone;  // Dictionary::String of the kernel, where it is one
  // When, by the rank's own clock. Loading and the host's other work that lie among each other have
  // one start and one end: `ns` is the time of each.
  int64_t start = 0, end = 0;
  int64_t ns = 0;
  uint32_t graph = kNone;  // CUPTI's id of the graph, where it is one that was traced as a whole
};

// From the last work to the first, each piece followed by what it waited for:
//   a collective    was transferred since its last member arrived; the path goes on there, on that
//                   rank (its own wait is not on the path)
//   other work      waited for the work before it on its stream; else, where that ended over 5 us
//                   before and other work of the rank ended later, for that; else for its launch,
//                   where the launch came after both
//   a launch        (one that takes 30 us or longer launches as it returns: HandedOver) waited for
//   the host since the last call that waited for the device, and that
//                   call for the work that it waited for (DeviceOrder)
// No clocks of two ranks are compared. Its length is what the run would take if nothing on it were
// shortened; only what is on it is worth shortening. Worked out once and kept in the run's memo.
const std::vector<PathSegment>& FindCriticalPath(const Run& run);

}  // namespace ranktap::collector
