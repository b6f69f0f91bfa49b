// Entry points that the loader, the driver and NVTX call, and the names by which they find us.
#pragma once

#include "proto/modes.h"

#define RANKTAP_EXPORT __attribute__((visibility("default")))

namespace ranktap::agent {

// kPreload when this library was there before main, else kEnvironment.
proto::LoadedBy AgentLoadedBy();

}  // namespace ranktap::agent
