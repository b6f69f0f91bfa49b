// A trace file -> the model. Frames are decoded straight into columns; times are mapped, tables
// sorted and launches joined at the end. Safe to call for different files on different threads.
#pragma once

#include <cstdint>
#include <string>

#include "collector/file/result.h"
#include "collector/trace/load/spare_columns.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Fails only when there is no trace at `path`; what is damaged is skipped and listed in
// Trace::damage. `spare`: memory to take for its columns.
Result<Trace> LoadTrace(const std::string& path, SpareColumns* spare = nullptr);

// The events that the headers of its blocks tell of; 0: it is no trace. Reads 64 bytes a block.
uint64_t CountEvents(const std::string& path);

}  // namespace ranktap::collector
