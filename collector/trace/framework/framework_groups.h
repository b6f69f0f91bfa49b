// Process groups of our own captures, as agent/sources/torch/python/distributed.py told them: one
// step of loading.
#pragma once

#include "collector/trace/model.h"

namespace ranktap::collector {

// Fills Trace::process_groups.
void TakeFrameworkGroups(Trace* trace);

}  // namespace ranktap::collector
