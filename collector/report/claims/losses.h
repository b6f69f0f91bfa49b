// What the steps lose, and what of it can be won back: what a verdict claims (claim.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/report/claims/mean_step.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct Loss {
  Cause cause{};
  // Per step, mean over the ranks; where it blames a rank that of the rank which waits most.
  int64_t ns = 0;
  // Per step, what the critical path bears of it, on whichever rank: at most that can be won back.
  // Never over `ns`.
  int64_t recoverable_ns = 0;
  bool recoverable_known = true;  // false: RulingOn(kRecoverable) says why
  uint32_t trace = 0;             // the rank that loses the most, or that the others wait for
  bool blames = false;            // `finding` names the rank
  std::string finding;
};

// The largest first, without what the two below add. Worked out once and kept in the run's memo.
const std::vector<Loss>& FindLosses(const Run& run);

// Sets recoverable_ns.
void AddRecoverable(const Run& run, std::vector<Loss>* losses);

// Adds to findings where in the program the loss arises.
void AddPlaces(const Run& run, const MeanStep& mean, std::vector<Loss>* losses);

}  // namespace ranktap::collector
