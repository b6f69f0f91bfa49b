// What `ranktap report --help [NAME]` says of the reports.
#pragma once

#include <string>
#include <vector>

#include "collector/report/report.h"

namespace ranktap::collector {

// All of them, a line each.
std::string ReportsHelp();
// The six first ones with their questions, the names of the rest by group; 80 columns.
std::string FirstReportsHelp();
// "kernels duration; ranges kernel, projection": what --by may be.
std::string WaysHelp();
// The columns of one, as in JSON and CSV, with their units and what they say.
std::string ColumnsHelp(const Report& report);
// The report that `--help` is asked about; nullptr: the verb itself, or no help at all.
const Report* HelpWanted(const std::vector<std::string>& arguments);

}  // namespace ranktap::collector
