// The words of `ranktap report` that are runs, and those that should have been reports.
#pragma once

#include <string>
#include <vector>

#include "collector/report/report.h"

namespace ranktap::collector {

// The command that was meant, with its words, where the reports are named first, or where two runs
// are named and no report compares them. Empty: nothing is wrong that can be told so early.
std::string MeantReport(const std::vector<std::string>& paths,
                        const std::vector<const Report*>& reports);

// False, after a complaint: a report that has --by does not have this one.
bool WayIsKnown(const std::string& by, const std::vector<const Report*>& reports);

}  // namespace ranktap::collector
