// A line of the program that takes less. A part of changes.h.
#pragma once

#include "collector/facts/replay/changes.h"

namespace ranktap::collector {

std::optional<Failure> ChangeLine(const Run& run, const Change& change, GraphEdit* edit);

}  // namespace ranktap::collector
