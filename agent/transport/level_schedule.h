// The levels to come and their instants, as the collector has ordered them. A window is two
// entries, so that it ends on its own if the collector does not live to see it. At second 0:
//
//   Take(kernels from 10 to 20)   10 kernels, 20 dormant
//   Take(full from 15 to 30)      10 kernels, 15 full, 30 dormant (the 20 is gone)
//   TakeDue at 16                 full, once; 30 dormant is left
//
// Runs on: the sender thread.  May not: wait.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "agent/transport/messages.h"

namespace ranktap::agent {

class LevelSchedule {
 public:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  // Both clocks as of now: CLOCK_MONOTONIC, which entries are kept by, and CLOCK_REALTIME, which
  // orders are given in. An order takes the place of everything that is due at its instant or
  // later; what ends before it still ends.
  void Take(const LevelOrder& order, uint64_t now_ns, uint64_t realtime_ns);
  // The latest entry that is due, once; those that it overtook are gone.
  std::optional<LevelOrder> TakeDue(uint64_t now_ns);
  // When the next entry is due, CLOCK_MONOTONIC; kNever: none is.
  uint64_t next_ns() const { return entries_.empty() ? kNever : entries_.front().at_ns; }

 private:
  struct Entry {
    uint64_t at_ns;
    LevelOrder order;
  };
  std::vector<Entry> entries_;  // by time; a handful
};

}  // namespace ranktap::agent
