#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// When was capture off on purpose, and why? Times count from the trace's first event.
Table TabulateGaps(const Run& run);

}  // namespace ranktap::collector
