#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Which windows (ranktap start, --delay, signals) were captured, on how many ranks, and how far
// apart did the ranks begin and end? By CLOCK_REALTIME: between nodes the difference of their
// clocks is in the figure.
Table TabulateWindows(const Run& run);

}  // namespace ranktap::collector
