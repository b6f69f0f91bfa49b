// What the verdict's sentences rest on, asked on all processors: they find it in the memo. A part
// of verdict.h.
#pragma once

#include "collector/trace/run.h"

namespace ranktap::collector {

// What comes before all else.
void AskFirstFacts(const Run& run);
// What is known of a run in which a device did anything.
void AskDeviceFacts(const Run& run);

}  // namespace ranktap::collector
