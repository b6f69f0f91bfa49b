#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What did ranktap itself cost each rank? Time of the program's threads in hooks is estimated from
// every 64th event's, and does not hold what CUPTI does around them.
Table TabulateCost(const Run& run);

}  // namespace ranktap::collector
