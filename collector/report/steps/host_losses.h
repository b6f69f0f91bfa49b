// The time of hosts without a device that no phase explains, by its place in the step. A part of
// verdict.h.
#pragma once

#include <vector>

#include "collector/report/claims/losses.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Cause::kHost, per step, as a mean over so many ranks. `finding`: "after the optimizer and before
// the next forward pass (in range log)".
std::vector<Loss> LossesByPlace(const Run& run, int64_t ranks);

}  // namespace ranktap::collector
