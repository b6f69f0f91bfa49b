#pragma once

#include "collector/report/table.h"
#include "collector/trace/run_reader.h"

namespace ranktap::collector {

// The process groups of torch.distributed that each rank told of.
Table TabulateGroups(const Run& run);

}  // namespace ranktap::collector
