// The agent's table of contents.
#pragma once

#include <span>

#include "agent/sources/source.h"

namespace ranktap::agent {

// In the order in which levels are applied and the process's end is told.
std::span<Source* const> AllSources();

}  // namespace ranktap::agent
