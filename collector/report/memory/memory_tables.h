// Memory by step, by module and over time, from the framework's blocks (memory_blocks.h).
#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// A row for each rank, device and step in which memory was watched: what was held at its start, at
// its peak and at its end; `unfreed_bytes` of what the step allocated is still held at its end,
// `new_unfreed_bytes` of that is neither gradient nor parameter nor optimizer state: what leaks.
// `saved_bytes` are the activations held when its first backward began: saved for it, and the
// outputs. `fragmentation_percent` = reserved but not given out, at the most reserved; of GPUs.
Table TabulateMemorySteps(const Run& run);

// What each module held at the device's peak, by category, without its children; and its
// activations when the backward that followed began.
Table TabulateMemoryModules(const Run& run);

// The curve by category, at most kMemorySamples moments a device: of each equal part of the time
// the moment at which most was held, so that the highest sample is the peak. With
// AnalysisOptions::sample_rate N, as MegEngine's sample_rate: what is held at the end of every Nth
// operator, in the order of their ends.
inline constexpr int64_t kMemorySamples = 400;
Table TabulateMemoryOverTime(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
