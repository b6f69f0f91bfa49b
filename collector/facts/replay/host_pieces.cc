#include "collector/facts/replay/host_pieces.h"

#include <algorithm>

#include "collector/facts/shared_clock.h"

namespace ranktap::collector {

void ScaleHost(const Run& run, uint32_t trace, const HostPieces& pieces, double factor,
               GraphEdit* edit) {
  const JobGraph& job = JobGraphOf(run);
  const uint32_t lane = job.main_lane[trace];
  if (lane == kNone || pieces.empty()) return;
  const SharedClock& clock = SharedClockOf(run);
  const TimedGraph& graph = job.graph;
  size_t first = 0;
  for (const uint32_t node : job.lanes[lane].nodes()) {
    if (graph.own[node] == 0) continue;
    const int64_t begin = graph.start[node], end = graph.end(node);
    while (first < pieces.size() && clock.At(trace, pieces[first].end) <= begin) ++first;
    double touched = 0;
    for (size_t i = first; i < pieces.size(); ++i) {
      const int64_t from = std::max(clock.At(trace, pieces[i].begin), begin);
      const int64_t until = std::min(clock.At(trace, pieces[i].end), end);
      if (clock.At(trace, pieces[i].begin) >= end) break;
      if (until > from) touched += static_cast<double>(until - from) * pieces[i].part;
    }
    const double share = touched / static_cast<double>(graph.own[node]);
    edit->share[node] *= std::max(1 - (1 - factor) * share, 0.0);
  }
}

}  // namespace ranktap::collector
