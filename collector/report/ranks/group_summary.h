#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The process groups of torch.distributed that each rank told of.
Table TabulateGroups(const Run& run);

}  // namespace ranktap::collector
