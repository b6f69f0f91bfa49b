#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// kernel_summary.h; with --hta-compat the second table of HTA's get_gpu_kernel_breakdown with all
// names kept apart: by rank, type and name, memory operations included.
Table TabulateKernelsWith(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
