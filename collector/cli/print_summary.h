// What `ranktap run` says at its end.
#pragma once

#include <string>

#include "collector/file/run_info.h"

namespace ranktap::collector {

// Prints the summary of the run in the directory `path` to stderr, or why there is none.
void PrintSummary(const RunInfo& info, const std::string& path);

}  // namespace ranktap::collector
