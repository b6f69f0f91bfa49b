// One origin of events. A source's hooks may fire on any thread from before it is asked for
// anything until the process ends; what they record is decided by the capture bits alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "agent/core/agent_config.h"
#include "agent/core/cost_fields.h"
#include "proto/modes.h"

namespace ranktap::agent {

class Source {
 public:
  virtual std::string_view name() const = 0;
  // The level changed, for this reason. Runs on: the sender thread. May not wait for a user thread.
  virtual void SetLevel(proto::Level level, proto::GapReason reason) = 0;
  // The process is ending: bring what is still outside the rings into them, until `deadline_ns`
  // (CLOCK_MONOTONIC) at the latest. Runs on: the exiting thread.
  virtual void Finish(uint64_t deadline_ns) = 0;
  // Adds to the bill what this source alone knows. Runs on: the sender thread, the exiting thread.
  virtual void AddCost(CostFields& cost) const = 0;

 protected:
  ~Source() = default;  // sources are never destroyed
};

}  // namespace ranktap::agent
