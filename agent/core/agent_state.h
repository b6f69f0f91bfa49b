// The parts of the running agent that sources need: set up by the lifecycle before the first hook
// is installed, never destroyed.
#pragma once

#include "agent/core/agent_config.h"
#include "agent/core/arena.h"

namespace ranktap::agent {

struct AgentState {
  const AgentConfig* config = nullptr;
  Arena* names = nullptr;
  proto::SegmentHeader* segment = nullptr;
};

extern AgentState g_agent;

inline Arena& Names() { return *g_agent.names; }
inline const AgentConfig& Config() { return *g_agent.config; }

}  // namespace ranktap::agent
