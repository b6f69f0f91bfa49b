// The level in force: what it switches on in the sources, what the overhead budget takes away from
// it, and the gaps that a lower level leaves.
//
// State, all of it in capture_level.cc: the level and the ticks since when something is not
// recorded are atomics; the budget and what it still allows belong to the sender thread, and to the
// exiting thread once the sender has been told to do nothing more.
// May not: run in a hook (announcing allocates), wait for a user thread; go below level ranges for
// the budget's sake.
#pragma once

#include <cstdint>

#include "agent/core/cost_fields.h"
#include "agent/transport/messages.h"
#include "proto/modes.h"

namespace ranktap::agent {

// The first level, and the most that hooks may take of the wall time, in millionths (0: no limit).
// Then each source's start; others ask for CurrentLevel when they begin. Runs on: the starting
// thread, once.
void BeginCapture(proto::Level level, uint32_t budget_ppm);

// From any thread.
proto::Level CurrentLevel();

// The collector's order; a welcome does not undo what the budget has decided. Runs on: the sender
// thread.
void OnLevelOrder(const LevelOrder& order);

// Gives up one level when `cost.callback_ticks` has been over the budget for long enough, and adds
// to the cost record what the budget is and has done. Runs on: the sender thread, then the exiting
// one.
void KeepToBudget(CostFields& cost);

// The process is ending: the budget takes nothing away any more. From any thread.
void StopSteppingDown();

}  // namespace ranktap::agent
