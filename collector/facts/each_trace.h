#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

// Calls visit(index) for each trace of the run, on as many threads as there are processors; visit
// may touch what belongs to its index alone, and must not throw.
template <typename Visit>
void ForEachTraceAtOnce(const Run& run, Visit&& visit) {
  std::atomic<uint32_t> next = 0;
  const auto work = [&] {
    for (uint32_t i = next++; i < run.traces.size(); i = next++) visit(i);
  };
  std::vector<std::jthread> threads;
  const size_t wanted =
      std::min<size_t>(run.traces.size(), std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
}

}  // namespace ranktap::collector
