// The line of the program that has more than half of what a host without a device spends on a
// cause.
#pragma once

#include <array>
#include <string>

#include "collector/facts/causes/cause.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// "train.py:97 (main)" by cause, over the counted steps of such ranks; empty: no line has that.
// Never of waits for other ranks, which are nobody's line.
std::array<std::string, kCauses> LinesOfHosts(const Run& run);

}  // namespace ranktap::collector
