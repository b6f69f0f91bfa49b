// What communication is called in tables (claim.h): a transfer only where the checks tell waiting
// apart from it.
#pragma once

#include <string_view>

#include "collector/facts/causes/cause.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

bool TellsWaiting(const Run& run);

// NameOf(cause), or "exposed communication".
std::string_view SaidName(Cause cause, bool tells_waiting);

}  // namespace ranktap::collector
