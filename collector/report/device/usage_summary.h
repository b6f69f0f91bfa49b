#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The first of them over time: in kUsageWindows equal parts of a device's time.
inline constexpr int64_t kUsageWindows = 50;

}  // namespace ranktap::collector
