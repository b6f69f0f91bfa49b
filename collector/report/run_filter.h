// The part of a run that a report is asked about.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/facts/numbers/interval_union.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// "0,2-5": numbers and ranges of them, in the order given.
struct NumberSet {
  std::vector<std::pair<int64_t, int64_t>> ranges;  // both ends included
  bool contains(int64_t number) const;
};
std::optional<NumberSet> ParseNumberSet(std::string_view text);

// "0,2-5"
std::string ListOf(const std::set<int64_t>& numbers);

// Leaves the traces of those ranks; traces without a rank go, but one alone is 0.
void KeepRanks(const NumberSet& ranks, Run* run);

// Leaves, in each trace, what steps of those numbers did: host events that began in one of them,
// and device work that one of them launched (or that began in one, where no launch is known).
// Traces without steps stay whole; returns a sentence for each of them. An error, and nothing is
// taken, when the run has steps and none of those.
Result<std::vector<std::string>> KeepSteps(const NumberSet& steps, Run* run);

// Leaves of each trace what began in its window, on its own clock: one of `windows` for each.
// False, and nothing is taken, where nothing of any did.
bool KeepWindows(std::span<const Interval> windows, Run* run);

}  // namespace ranktap::collector
