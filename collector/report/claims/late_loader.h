// Why batches come late from a loader with workers: what its workers do, as samples of them say it,
// and how full its queue was.
#pragma once

#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

// "The loader is late because dataset.py:41 (Items.__getitem__), in PIL/Image.py (open), takes 71.0
// % of its 2 workers' time; 4 workers would hide it." Empty: it has no workers, or nobody knows
// what they do.
std::string DescribeLateLoader(const Trace& trace, const RankWaterfall& waterfall);

// The same of the rank that waits most for its loader.
std::string DescribeLateLoader(const Run& run);

}  // namespace ranktap::collector
