// The agent's settings from the environment (proto/environment.h). Read once, at the start.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "proto/modes.h"
#include "proto/operator_values.h"

namespace ranktap::agent {

struct AgentConfig {
  bool disable = false;
  std::string socket_path;
  std::string spool_directory;  // empty: the user's default
  uint32_t spool_mib = 1024;
  proto::Level level = proto::Level::kDormant;
  std::string log_path;
  uint32_t rank = kNoRank;
  uint32_t ring_mib = 32;
  uint32_t cupti_buffers_mib = 24;
  uint32_t device_buffers = 16;
  uint32_t flush_ms = 1000;
  uint32_t return_ms = 1000;
  uint32_t exit_ms = 500;
  std::string cupti_path;
  bool cuda = true;
  bool driver_launches = false;
  bool hardware_events = false;
  bool whole_graphs = false;
  bool share_cupti = false;
  proto::StackPolicy stacks = proto::StackPolicy::kAuto;
  uint32_t stacks_sample = 1;
  uint32_t sample_us = 0;
  uint32_t run_pid = 0;
  uint32_t budget_ppm = 0;
  bool redact = true;
  bool python = false;
  // From here on for agent/sources/torch/python, by agent.config().
  std::string schedule;
  bool flop_check = false;
  proto::TensorDetail tensors = proto::TensorDetail::kNone;

  static constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
  bool operator==(const AgentConfig&) const = default;
};

struct ParsedConfig {
  AgentConfig config;
  std::vector<std::string> warnings;
};

// Cannot fail: a bad value keeps its default and adds a warning, as does an unknown name that
// starts with RANKTAP_. A typo must not stop a job.
ParsedConfig ParseAgentConfig(std::span<const char* const> environment);

// The switch that must beat every bug: scans environ for RANKTAP_DISABLE=1 and nothing else.
// Allocates nothing; safe in a constructor, before any other code of ours.
bool DisabledByEnvironment(const char* const* environment);

}  // namespace ranktap::agent
