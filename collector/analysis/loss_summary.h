#pragma once

#include "collector/analysis/table.h"
#include "collector/trace/run_reader.h"

namespace ranktap::collector {

// Which events are missing, and why? One row for each rank, writer and reason.
Table TabulateLosses(const Run& run);

}  // namespace ranktap::collector
