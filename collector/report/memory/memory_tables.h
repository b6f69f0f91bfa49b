// Memory by step, by module and over time, from the framework's blocks (memory_blocks.h).
#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The curve by category, at most kMemorySamples moments a device: of each equal part of the time
// the moment at which most was held, so that the highest sample is the peak. With
// ReportOptions::sample_rate N, as MegEngine's sample_rate: what is held at the end of every Nth
// operator, in the order of their ends.
inline constexpr int64_t kMemorySamples = 400;

// "At most 1.5 GiB were held on GPU 0, 3.000 s into the file: 1.0 GiB (66.7 %) of it by
// train.py(9): main. " Of the device that held most; empty: no allocation is known.
std::string DescribePeakMemory(const Run& run);

// Adds "allocations are recorded in 3 of 200 steps", or "in 2 to 3 of 200 steps, by rank". Nothing
// where no trace of the agent's has steps with allocations, or where all steps have them.
void NoteStepsWithAllocations(const Run& run, Table* table);

}  // namespace ranktap::collector
