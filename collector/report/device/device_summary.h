#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How did clock, power, temperature and memory of each rank's devices go, and what held the clocks
// back? From what NVML told the collector once a second.
Table TabulateDevices(const Run& run);

}  // namespace ranktap::collector
