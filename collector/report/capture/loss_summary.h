#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Which events are missing, and why? One row for each trace and reason: a rank with thousands of
// threads can have thousands of writers.
Table TabulateLosses(const Run& run);
// The same for each writer that lost any.
Table TabulateLossesByWriter(const Run& run);

}  // namespace ranktap::collector
