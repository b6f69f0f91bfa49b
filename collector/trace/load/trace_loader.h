// A trace file -> the model. Frames are decoded straight into columns; times are mapped, tables
// sorted and launches joined at the end. Safe to call for different files on different threads.
#pragma once

#include <string>

#include "collector/file/result.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Fails only when there is no trace at `path`; what is damaged is skipped and listed in
// Trace::damage.
Result<Trace> LoadTrace(const std::string& path);

}  // namespace ranktap::collector
