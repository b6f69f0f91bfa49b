// CUDA through CUPTI: the folder's outward header.
#pragma once

#include <cstdint>

#include "agent/core/cost_fields.h"
#include "proto/cupti_trial.h"
#include "proto/modes.h"

namespace ranktap::agent {

// As in Source (agent/sources/source.h).
void SetCuptiLevel(proto::Level level, proto::GapReason reason);
void FinishCupti(uint64_t deadline_ns);
void PauseCupti();
void ResumeCupti();
void AddCuptiCost(CostFields& cost);

// The driver is initialising: the moment to subscribe, before the first context. Once in a process.
// Runs on: the thread inside cuInit, with the driver's locks held.
void BeginCupti(proto::Level level);

// The collector's word on a CUPTI that may end the process. Runs on: the sender thread.
void TellCuptiTrial(proto::TrialOutcome outcome);

}  // namespace ranktap::agent
