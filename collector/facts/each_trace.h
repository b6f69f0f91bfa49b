#pragma once

#include <cstdint>

#include "collector/trace/at_once.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Calls visit(index) for each trace of the run, on as many threads as there are processors; visit
// may touch what belongs to its index alone, and must not throw.
template <typename Visit>
void ForEachTraceAtOnce(const Run& run, Visit&& visit) {
  ForEachAtOnce(run.traces.size(), [&visit](size_t i) { visit(static_cast<uint32_t>(i)); });
}

}  // namespace ranktap::collector
