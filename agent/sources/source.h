// One origin of events. A source's hooks may fire on any thread from before it is asked for
// anything until the process ends; what they record is decided by the capture bits alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "agent/core/agent_config.h"
#include "proto/modes.h"

namespace ranktap::agent {

// What a source adds to the agent's own bill (v1.Cost).
struct SourceCost {
  uint64_t drain_cpu_ns = 0;
  uint64_t names_missing = 0;
  uint64_t cupti_errors = 0;
  uint64_t flushes = 0;
  uint64_t stacks = 0, stack_memo_hits = 0, stack_memo_errors = 0, stack_frames_learnt = 0;
  uint64_t stack_slow_walks = 0, stacks_truncated = 0, stacks_refused = 0, stacks_unnamed = 0;
};

class Source {
 public:
  virtual std::string_view name() const = 0;
  // The level changed, for this reason. Runs on: the sender thread. May not wait for a user thread.
  virtual void SetLevel(proto::Level level, proto::GapReason reason) = 0;
  // The process is ending: bring what is still outside the rings into them, until `deadline_ns`
  // (CLOCK_MONOTONIC) at the latest. Runs on: the exiting thread.
  virtual void Finish(uint64_t deadline_ns) = 0;
  virtual void AddCost(SourceCost& cost) const = 0;

 protected:
  ~Source() = default;  // sources are never destroyed
};

}  // namespace ranktap::agent
