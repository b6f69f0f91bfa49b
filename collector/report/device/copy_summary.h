#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What is copied and set, how fast, and does the host wait for it? One row for each direction and
// pair of memories, all ranks:
//   gb_per_s      bytes / device time, 10^9 bytes
//   host_ns       inside the calls that launched it
//   alone_ns      device time in which nothing computed on the rank
Table TabulateCopies(const Run& run);

}  // namespace ranktap::collector
