#include "collector/cli/known_words.h"

#include <fmt/format.h>

#include "collector/cli/command.h"
#include "collector/export/exporter.h"
#include "collector/report/nearest_name.h"
#include "collector/report/report.h"

namespace ranktap::collector {
namespace {

template <typename Registry>
std::vector<std::string_view> NamesOf(const Registry& registry) {
  std::vector<std::string_view> names;
  for (const auto& entry : registry) names.push_back(entry.name);
  return names;
}

}  // namespace

std::vector<std::string_view> CommandNames() { return NamesOf(AllCommands()); }
std::vector<std::string_view> ReportNames() { return NamesOf(AllReports()); }
std::vector<std::string_view> ExportFormats() { return NamesOf(AllExporters()); }
std::vector<std::string_view> ReportFormats() {
  return {"text",    "json",      "csv",           "html",
          "parquet", "deepspeed", "deepspeed-old", "deepspeed-memory"};
}

std::string NoReport(std::string_view name) {
  return fmt::format("no report and no file '{}'{}", name, DidYouMean(name, ReportNames()));
}

std::string NoReportFormat(std::string_view name) {
  return fmt::format("no format '{}'; it is {}{}", name, fmt::join(ReportFormats(), ", "),
                     DidYouMean(name, ReportFormats()));
}

}  // namespace ranktap::collector
