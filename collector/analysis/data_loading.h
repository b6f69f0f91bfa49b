#pragma once

#include <vector>

#include "collector/analysis/numbers/interval_union.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// When the host waited for a data loader: ranges, operators and Python calls that are named like
// one
// ("DataLoader", "get_batch", "__next__", ...), merged, by start.
std::vector<Interval> DataLoading(const Trace& trace);

}  // namespace ranktap::collector
