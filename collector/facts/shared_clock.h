// Moments of several ranks on one clock, where they can be compared.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/facts/clock_alignment.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

class SharedClock {
 public:
  explicit SharedClock(const Run& run);

  // Captures of one host, or a run of one trace: the ranks' clocks are one, whatever they share.
  bool is_of_one_host() const { return is_of_one_host_; }
  // Else by the ends of collectives (AlignClocks), where all ranks meet.
  bool is_known() const { return is_known_; }
  // To which a moment is known.
  int64_t residual_ns() const { return residual_ns_; }
  // On the first trace's clock. As it is where the trace's clock is not known.
  int64_t At(uint32_t trace, int64_t time) const;

 private:
  bool is_of_one_host_ = false, is_known_ = true;
  std::vector<ClockDifference> differences_;  // by trace; empty: none
  int64_t residual_ns_ = 0;
};

// Worked out once and kept in the run's memo.
const SharedClock& SharedClockOf(const Run& run);

}  // namespace ranktap::collector
