// The record of a run that `run` and `collect` write when it begins.
#pragma once

#include <string>

#include "collector/file/run_info.h"

namespace ranktap::collector {

// A run that begins now, on this host, under an id that no other run has; without a command. What
// OpenTelemetry's variables say of the job is its metadata.
RunInfo DescribeNewRun(const std::string& level);

// Takes out the secrets of the command and of what a person says of the run, unless RANKTAP_REDACT
// is 0.
void RedactAsAsked(RunInfo* info);

}  // namespace ranktap::collector
