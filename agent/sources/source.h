// One origin of events: a folder each, one line each in registry.cc. A source's hooks may fire on
// any thread from before it is asked for anything until the process ends; what they record is
// decided by the capture bits alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "agent/core/agent_config.h"
#include "agent/core/cost_fields.h"
#include "proto/modes.h"

namespace ranktap::agent {

// A source that leaves a function out has nothing to do then.
struct Source {
  std::string_view name;
  // The agent begins, at the level of the configuration. Runs on: the starting thread.
  void (*start)() = [] {};
  // The level changed, for this reason. Runs on: the sender thread. May not wait for a user thread.
  void (*set_level)(proto::Level level, proto::GapReason reason) = [](proto::Level,
                                                                      proto::GapReason) {};
  // The process is ending: bring what is still outside the rings into them, until `deadline_ns`
  // (CLOCK_MONOTONIC) at the latest. Runs on: the exiting thread.
  void (*finish)(uint64_t deadline_ns) = [](uint64_t) {};
  // Its threads are to end, and start again with the rights of the thread that resumes them, while
  // the process goes on: capture stays as it is. Runs on: a thread of the program.
  void (*pause)() = [] {};
  void (*resume)() = [] {};
  // Closes a fork child's copies of what it has open. Runs on: the forking thread, in the child.
  void (*close_in_fork_child)() = [] {};
  // Adds what this source alone knows of the cost. Runs on: the sender thread, the exiting thread.
  void (*add_cost)(CostFields& cost) = [](CostFields&) {};
};

// In the order in which levels are applied and the process's end is told.
std::span<const Source> AllSources();

}  // namespace ranktap::agent
