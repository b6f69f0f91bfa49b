// Contexts, streams, modules and graphs as CUPTI's callbacks tell of them.
// Runs on: user threads, inside CUDA calls, with CUPTI's locks held.  May not: allocate, lock, log,
// call CUDA; call CUPTI except for the id of the object at hand, which may change errno.
#pragma once

#include "agent/sources/cupti/cupti_abi.h"
#include "proto/events.h"

namespace ranktap::agent::cupti {

// Fills in what the change is about, but for its time; false for resources that are not recorded.
bool DescribeResource(ResourceCbid cbid, const ResourceData& data, proto::ResourceEvent& event);

}  // namespace ranktap::agent::cupti
