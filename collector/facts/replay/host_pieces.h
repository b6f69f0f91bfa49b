// Parts of a host thread's time that a change touches. A part of changes.h.
#pragma once

#include <vector>

#include "collector/facts/replay/job_graph.h"

namespace ranktap::collector {

struct HostPiece {
  int64_t begin = 0, end = 0;  // by the rank's own clock
  double part = 1;             // of it is touched
};
using HostPieces = std::vector<HostPiece>;  // by begin, disjoint

// The thread of a rank's steps takes `factor` of the touched parts of what it ran.
void ScaleHost(const Run& run, uint32_t trace, const HostPieces& pieces, double factor,
               GraphEdit* edit);

}  // namespace ranktap::collector
