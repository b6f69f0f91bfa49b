// What the loader, the driver and NVTX call, and what they found us by.
#pragma once

#include "proto/modes.h"

#define RANKTAP_EXPORT __attribute__((visibility("default")))

namespace ranktap::agent {

// kPreload when this library was there before main, else kEnvironment.
proto::LoadedBy AgentLoadedBy();

}  // namespace ranktap::agent
