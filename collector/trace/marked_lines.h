// What the agent's hooks in a framework say in text: marks whose payload is lines.
#pragma once

#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// The lines of all marks called `name` in `domain`, in the order of the marks. They point into the
// trace's payloads.
std::vector<std::string_view> MarkedLines(const Trace& trace, std::string_view domain,
                                          std::string_view name);

}  // namespace ranktap::collector
