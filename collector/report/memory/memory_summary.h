#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// A row for each rank, device and allocator: the framework's (Allocations; CPU memory has no
// device) and CUDA's own (what the program got from cudaMalloc and its like). Peaks are of what is
// given out; the framework's counts are torch's "Total Allocated" where the trace has it, else sums
// from the first event on.
Table TabulateMemory(const Run& run);

// What held the framework's memory at each device's peak: categories where the file has them, else
// the stacks or the operators that allocated what was not given back by then; these too with
// options.by_stack.
Table TabulateMemoryPeak(const Run& run, const AnalysisOptions& options = {});

}  // namespace ranktap::collector
