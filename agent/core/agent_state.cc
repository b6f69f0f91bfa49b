// Runs on: any thread reads it.  May not: be written after the first hook is installed.
#include "agent/core/agent_state.h"

namespace ranktap::agent {

constinit AgentState g_agent;

}  // namespace ranktap::agent
