// The changes that a run itself suggests: its modules, lines, kernels and ranks. A part of
// predict.h.
#pragma once

#include <vector>

#include "collector/facts/replay/changes.h"

namespace ranktap::collector {

std::vector<Change> SuggestChanges(const Run& run);

}  // namespace ranktap::collector
