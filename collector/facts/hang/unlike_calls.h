// Calls that ranks entered as the same one, and differently.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "collector/facts/hang/call_table.h"
#include "collector/facts/hang/find_hang.h"

namespace ranktap::collector {

// The first of each group. Later ones follow from it.
std::map<CallKey, HangFinding> FindUnlikeCalls(const CallTable& table);

}  // namespace ranktap::collector
