// A rank with several traces: a profiler writes a file for each of its windows.
#pragma once

#include <cstdint>
#include <utility>

#include "collector/trace/run.h"

namespace ranktap::collector {

// The number of `t` among its rank's traces, by time: 0 for the first, and where no rank is known.
inline uint32_t WindowOf(const Run& run, uint32_t t) {
  const Trace& trace = run.traces[t];
  if (!trace.info.rank) return 0;
  uint32_t earlier = 0;
  for (uint32_t u = 0; u < run.traces.size(); ++u) {
    const Trace& other = run.traces[u];
    earlier += other.info.rank == trace.info.rank && u != t &&
               std::pair(other.first_ns, u) < std::pair(trace.first_ns, t);
  }
  return earlier;
}

// The trace that stands for all of its rank.
inline uint32_t FirstOfRank(const Run& run, uint32_t t) {
  if (!run.traces[t].info.rank) return t;
  uint32_t first = 0;
  while (run.traces[first].info.rank != run.traces[t].info.rank) ++first;
  return first;
}

}  // namespace ranktap::collector
