// What an importer says in TraceInfo::notes, and reports read there.
#pragma once

#include <algorithm>
#include <string_view>

#include "collector/trace/model.h"

namespace ranktap::collector {

// A memory snapshot without a history, or of PyTorch before 2.1.
inline constexpr std::string_view kMemoryWithoutTimes =
    "the file has no times: its events stand in their order";
// Chakra's nodes that say how long they take, and not when.
inline constexpr std::string_view kNodesWithoutStart =
    "its nodes have no start: they stand in their order, each behind the one before";

inline bool HasNote(const Trace& trace, std::string_view note) {
  return std::ranges::find(trace.info.notes, note) != trace.info.notes.end();
}

// The times of its rows are those at which they ran. Without, nothing is known of overlap, idle
// time, exposure and the order of ranks.
inline bool HasStarts(const Trace& trace) {
  return trace.origin != TraceOrigin::kExecution && !HasNote(trace, kNodesWithoutStart);
}

}  // namespace ranktap::collector
