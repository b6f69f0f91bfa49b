#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How much of its time does each device run kernels? As MegEngine's profiler defines it
// (imperative/src/impl/profiler/states.h), for each rank and device:
//   gpu_usage_ratio    100 |union of kernels| / (last kernel's end - first kernel's start)
//   train_time_ratio   100 sum over steps (last end - first start of the step's kernels) / the same
// and `busy_percent`, in which copies and memsets count too.
Table TabulateUsage(const Run& run);

// The first of them over time: in kUsageWindows equal parts of a device's time.
inline constexpr int64_t kUsageWindows = 50;
Table TabulateUsageOverTime(const Run& run);

}  // namespace ranktap::collector
