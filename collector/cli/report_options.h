// The options of `report` that two reports alone heed: the roofs of *roofline*, and what
// *throughput* divides by. A part of report.cc.
#pragma once

#include "collector/report/options.h"
#include "collector/terminal/arguments.h"

namespace ranktap::collector {

void AddRoofOptions(Arguments* app, ReportOptions* options);
void AddThroughputOptions(Arguments* app, ReportOptions* options);

// False, after a complaint: nobody knows the roofs of the device that is asked for.
bool DeviceIsKnown(const ReportOptions& options);

}  // namespace ranktap::collector
