// What `run` and `collect` say of a run when it begins.
#pragma once

#include <string>

#include "collector/file/run_info.h"

namespace ranktap::collector {

// A run that begins now, on this host, under an id that no other run has; without a command.
RunInfo DescribeNewRun(const std::string& level);

}  // namespace ranktap::collector
