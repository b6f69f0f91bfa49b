#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What is each module made of: parameters, and the bytes of parameters, buffers, gradients and
// optimizer state, with all modules below it, after the first step of the first rank that told.
// Each storage counts once, for the module that comes first.
Table TabulateParameters(const Run& run);

}  // namespace ranktap::collector
