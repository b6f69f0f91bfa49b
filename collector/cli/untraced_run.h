#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/report/table.h"

namespace ranktap::collector {

// What a report says of a run of which nothing was traced: how it ended, and what would be traced.
// nullopt: these are other paths.
std::optional<Table> OfUntracedRun(const std::vector<std::string>& paths);

}  // namespace ranktap::collector
