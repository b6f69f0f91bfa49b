#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The second table of HTA's get_gpu_kernel_breakdown with all names kept apart: by rank, type and
// name, memory operations included.
Table TabulateHtaKernels(const Run& run);

}  // namespace ranktap::collector
