// Finds the rank that makes the others wait, how much that costs, and what it does meanwhile.
#pragma once

#include <optional>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/collectives.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

// A host that is late after a wait is late for both: the wait bounds what counts as kSync.
inline int64_t TimeOf(Cause cause, const CauseTimes& times) {
  if (cause != Cause::kSync && cause != Cause::kHost) return times[static_cast<size_t>(cause)];
  return times[static_cast<size_t>(Cause::kSync)] + times[static_cast<size_t>(Cause::kHost)];
}

struct Straggler {
  uint32_t trace = 0;          // the rank's first
  int64_t caused_wait_ns = 0;  // per step and waiting rank, in collectives it came last to
  int64_t last_arrivals = 0, collectives = 0;
  size_t steps_late = 0, steps = 0;  // steps in which it caused the most wait of all ranks
  // In at least half of the steps, and in two, and twice as often as any other rank.
  bool persistent = false;
  // What it spends more time on than the median of the others, the most; and how much more.
  std::optional<Cause> cause;
  int64_t excess_ns = 0;
};

// All ranks that any other waited for, the costliest first. Needs collectives with two traced
// members; without clocks: all members of a collective end together.
std::vector<Straggler> FindStragglers(const Run& run, const std::vector<CollectiveRun>& collectives,
                                      const std::vector<RankWaterfall>& waterfalls);

// The same of a run's own collectives and waterfalls. Worked out once and kept in the run's memo.
const std::vector<Straggler>& StragglersOf(const Run& run);

// Asks about those that FindStragglers found: none has a habit, and two cause much the same.
// Nobody's guilt.
bool TakeTurns(const std::vector<Straggler>& stragglers);

}  // namespace ranktap::collector
