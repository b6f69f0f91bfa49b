// The names that a command line may hold, each from its registry: for suggestions and completion.
#pragma once

#include <string_view>
#include <vector>

namespace ranktap::collector {

std::vector<std::string_view> CommandNames();
std::vector<std::string_view> ReportNames();
std::vector<std::string_view> ReportFormats();
std::vector<std::string_view> ExportFormats();

}  // namespace ranktap::collector
