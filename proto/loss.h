// Every way an event can be lost, in one enum. The numbers are part of the wire format: append,
// never renumber, never reuse.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ranktap::proto {

enum class Loss : uint8_t {
  kRingFull = 0,         // no free ring chunk: the collector is slow or gone and the spool is full
  kNoWriter = 1,         // more threads than writer slots
  kNested = 2,           // raised by our own code, or by a hook below one of ours
  kContained = 3,        // an exception of ours was stopped at the boundary to the host
  kTooLarge = 4,         // the event does not fit into a chunk
  kCuptiDropped = 5,     // CUPTI says it dropped the record (cuptiActivityGetNumDroppedRecords)
  kCuptiDiscarded = 6,   // all CUPTI buffers were in use, the record went into the discard buffer
  kCuptiUnknown = 7,     // a record kind this build does not know
  kCuptiUnreadable = 8,  // a buffer that ended in an error: counted once per buffer
  kStore = 9,            // the collector or the spool could not write it (disk full, I/O error)
  kLimit = 10,           // over the collector's limits for this user
  kDeath = 11,           // half written when the process died: at most one per writer
  // From here on only in accounts, not in the header of each frame.
  kInterrupted = 12,  // cut off half-way: a longjmp or a cancellation left the hook for good
  kRingShare = 13,    // more threads at once than the rings have room for; the collector kept up
  kUnflushed = 14,    // still inside CUPTI when the process ended
  kDamaged = 15,      // the program wrote over the rings
};

inline constexpr size_t kLossCount = 16;
// A frame's header has room for the first ones.
inline constexpr size_t kFrameLossCount = 12;

using LossCounts = std::array<uint64_t, kLossCount>;
using FrameLossCounts = std::array<uint64_t, kFrameLossCount>;

constexpr FrameLossCounts FirstLosses(const LossCounts& counts) {
  FrameLossCounts first{};
  for (size_t i = 0; i < first.size(); ++i) first[i] = counts[i];
  return first;
}

struct LossInfo {
  std::string_view name;  // as `report losses` prints it
  std::string_view meaning;
};

// Indexed by Loss.
inline constexpr std::array<LossInfo, kLossCount> kLossInfo = {{
    {"ring-full", "no free ring chunk; the collector was slow or away"},
    {"no-writer", "more threads at once than writer slots"},
    {"nested", "raised while ranktap's own code ran on the thread"},
    {"contained", "an internal error was stopped before it reached the program"},
    {"too-large", "does not fit into a ring chunk"},
    {"cupti-dropped", "dropped by CUPTI"},
    {"cupti-discarded", "all CUPTI buffers were in use"},
    {"cupti-unknown", "a CUPTI record kind unknown to this build"},
    {"cupti-unreadable", "a CUPTI buffer that ended in an error (counted once per buffer)"},
    {"store", "could not be written to disk"},
    {"limit", "over the collector's limits for this user"},
    {"death", "half written when the process died"},
    {"interrupted", "half written when the program left the call by longjmp or cancellation"},
    {"ring-share", "no ring memory for one more thread; the collector kept up"},
    {"unflushed", "still inside CUPTI when the process ended"},
    {"damaged", "the program wrote over the ring"},
}};

template <size_t kCount>
constexpr uint64_t Total(const std::array<uint64_t, kCount>& counts) {
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  return total;
}

}  // namespace ranktap::proto
