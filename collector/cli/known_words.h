// The names that a command line may hold, each from its registry: for suggestions and completion.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

std::vector<std::string_view> CommandNames();
std::vector<std::string_view> ReportNames();
std::vector<std::string_view> ReportFormats();
std::vector<std::string_view> ExportFormats();

// Sentences for a name that there is not, with the nearest that there is.
std::string NoReport(std::string_view name);
std::string NoReportFormat(std::string_view name);

}  // namespace ranktap::collector
