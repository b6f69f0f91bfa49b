#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Where does the host wait for the device, and what does that cost? One row a function:
//   calls, per_step   (per step where steps are found, of all calls within steps)
//   total_ns, ...     host time inside the calls
//   idle_after_ns     nothing ran on any device of the rank, from the moment in the call at which
//                     the device ran dry to the next work: what the device lost to the wait
Table TabulateSyncs(const Run& run);

}  // namespace ranktap::collector
