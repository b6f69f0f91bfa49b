// The cost of our hooks to the program, measured on 1 entry in 64: reading the clock again at the
// end of each would itself be a third of the cost. The entry that is measured takes the long way
// (TicksAreTsc), so that the sum is rather too high.
// Runs on: user threads.  May not: allocate, lock, log.
#pragma once

#include <algorithm>
#include <cstdint>

#include "agent/core/host_clock.h"
#include "agent/core/writer.h"

namespace ranktap::agent {

class CallbackCost {
 public:
  // `start_ticks`: the time the hook has read anyway.
  CallbackCost(ThreadState& thread, uint64_t start_ticks)
      : thread_(thread), start_ticks_(IsDue(thread) ? start_ticks : 0) {}
  ~CallbackCost() {
    if (start_ticks_ == 0) [[likely]]
      return;
    const uint64_t ticks = NowTicks() - start_ticks_;
    ++thread_.sampled_callbacks;
    thread_.sampled_ticks += ticks;
    thread_.sampled_max_ticks = std::max(thread_.sampled_max_ticks, ticks);
  }
  CallbackCost(const CallbackCost&) = delete;
  CallbackCost& operator=(const CallbackCost&) = delete;

  // The hook that begins now is one of them.
  static bool IsDue(const ThreadState& thread) { return thread.hooked() % 64 == 0; }

 private:
  ThreadState& thread_;
  uint64_t start_ticks_;
};

}  // namespace ranktap::agent
