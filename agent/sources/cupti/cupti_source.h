// CUDA through CUPTI: the folder's outward header.
#pragma once

#include "agent/sources/source.h"
#include "proto/modes.h"

namespace ranktap::agent {

Source& CuptiSource();

// The driver is initialising: the moment to subscribe, before the first context. Once in a process.
// Runs on: the thread inside cuInit, with the driver's locks held.
void BeginCupti(proto::Level level);

}  // namespace ranktap::agent
