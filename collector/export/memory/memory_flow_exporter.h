#pragma once

#include <optional>
#include <span>
#include <string>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// MegEngine's memory_flow.svg: time to the right, 100 us a unit, addresses downwards, 1 MB a unit;
// a rectangle for each block that the framework's allocator gave out, the darker the longer it
// lived. Addresses that no block ever had are left out, so that the heights above one moment sum up
// to what was held then; devices lie one below the other. `tag:` attributes as MegEngine's, and
// `tag:category`, `tag:device`. One trace; blocks with known addresses only.
std::optional<Failure> WriteMemoryFlow(const Run& run, std::span<const Trace* const> traces,
                                       const ExportOptions& options, const std::string& path);

}  // namespace ranktap::collector
