// What `ranktap calibrate` wrote about the hosts of a run and their GPUs, for reports: --roofs.
#pragma once

#include <string>

#include "collector/terminal/arguments.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

void AddHostRoofsOption(Arguments* app, std::string* file);

// `file`, or where it is empty the files of the run's hosts and devices where calibrate writes
// them. False, after a complaint: the file is none, or of a host or device that is not in the run.
bool TakeHostRoofs(const std::string& file, const Run& run);

}  // namespace ranktap::collector
