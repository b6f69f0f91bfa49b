// A module that takes less, in both passes. A part of changes.h.
#pragma once

#include "collector/facts/replay/changes.h"

namespace ranktap::collector {

std::optional<Failure> ChangeModule(const Run& run, const Change& change, Doubt doubt,
                                    GraphEdit* edit);

}  // namespace ranktap::collector
