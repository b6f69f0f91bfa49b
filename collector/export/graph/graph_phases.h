// Which part of training each operator belongs to.
#pragma once

#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// By row: "forward", "backward", "optimizer", or nothing. An operator inside another has that one's
// part.
std::vector<std::string_view> PhasesOfOperators(const Trace& trace);

}  // namespace ranktap::collector
