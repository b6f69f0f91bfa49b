// Joins work on a device to the API call that launched it, by correlation id.
#pragma once

#include "collector/trace/model.h"

namespace ranktap::collector {

// Fills `launch` of kernels, copies, memsets and graph launches; api_calls must be sorted. One call
// may have launched many (a graph). Correlation ids wrap after 2^32 calls: of several calls with
// one id the last that began before the work did, give or take 1 ms, is taken, else the first.
// Graph work whose id CUPTI is known to get wrong (GraphIdsWrongFrom) stays without a launch.
void JoinLaunches(Trace* trace);

}  // namespace ranktap::collector
