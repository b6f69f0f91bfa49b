// The last words of `ranktap run`.
#pragma once

#include <cstdint>
#include <string>

#include "collector/file/run_info.h"

namespace ranktap::collector {

// How the command was to be captured: --level, --delay, --duration (0: none), --dormant.
struct CapturePlan {
  v1::Level level = v1::LEVEL_KERNELS;
  uint64_t delay_ns = 0, duration_ns = 0;
  bool dormant = false;
};

// Prints the summary of the run in the directory `path` to stderr, or why there is none.
void PrintSummary(const RunInfo& info, const std::string& path, const CapturePlan& plan);

}  // namespace ranktap::collector
