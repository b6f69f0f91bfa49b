// Commands whose processes the agent cannot reach, and what to write instead.
#pragma once

#include <string>
#include <vector>

namespace ranktap::collector {

// For a command below which nothing was traced; one sentence, or empty. `library`: the agent's.
std::string WhyOutOfReach(const std::vector<std::string>& command, const std::string& library);

}  // namespace ranktap::collector
