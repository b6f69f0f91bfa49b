// Names for every address on a run's stacks: functions, inlined ones too, files and lines.
#pragma once

#include <string>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

// Fills Trace::symbols of every trace. Modules are taken from where they were loaded, if the build
// id there is still the one that ran, else from `directories`: by build id
// (DIR/.build-id/ab/cdef..., as a debuginfo tree has them), or by name and build id anywhere below.
// A module that is nowhere leaves "+0x1f2c" and one sentence in SymbolTable::problems.
void ResolveStacks(const std::vector<std::string>& directories, Run* run);

}  // namespace ranktap::collector
