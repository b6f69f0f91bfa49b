#include "collector/terminal/report_help.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/report/column_meanings.h"
#include "collector/report/report_groups.h"
#include "collector/report/text/table_text.h"

namespace ranktap::collector {

std::string ReportsHelp() {
  size_t width = 0;
  for (const Report& report : AllReports()) width = std::max(width, report.name.size());
  const auto line = [width](std::string_view name) {
    const Report* const report = FindReport(name);
    return fmt::format("  {:<{}}  {}\n", name, width, report->question);
  };
  std::string text =
      "Analyses (without a name: the verdict and a summary; --help NAME: its columns)\n\n"
      "Start with one of these six:\n";
  const std::span<const std::string_view> first = FirstReports();
  for (const std::string_view name : first) text += line(name);
  for (const ReportGroup& group : ReportGroups()) {
    text += fmt::format("\n{}: {}\n", group.name, group.question);
    for (const std::string_view name : group.reports) {
      if (std::ranges::count(first, name) == 0) text += line(name);
    }
  }
  return text;
}

std::string FirstReportsHelp() {
  std::string text = "Analyses of `ranktap report RUN NAME`; these six first:\n";
  for (const std::string_view name : FirstReports()) {
    text += fmt::format("  {:<13}  {}\n", name, FindReport(name)->question);
  }
  constexpr size_t kWidest = 80, kIndent = 13;
  for (const ReportGroup& group : ReportGroups()) {
    std::string row = fmt::format("  {:<{}}", group.name, kIndent);
    for (const std::string_view name : group.reports) {
      if (std::ranges::count(FirstReports(), name) != 0) continue;
      if (row.size() + 2 + name.size() > kWidest) {
        text += row + "\n";
        row = std::string(kIndent + 2, ' ');
      }
      row += fmt::format("  {}", name);
    }
    text += row + "\n";
  }
  return text + "  `ranktap report --help` says what each answers.\n";
}

// Columns are the same for every run, so those of a run without ranks are asked for.
std::string ColumnsHelp(const Report& report) {
  const Run nothing;
  const Table table = report.compare != nullptr ? report(nothing, nothing) : report(nothing);
  size_t width = 0;
  for (const TableColumn& column : table.columns) width = std::max(width, column.name.size());
  std::string text = fmt::format("{}\nColumns:\n", report.question);
  for (const TableColumn& column : table.columns) {
    const std::string meaning(MeaningOf(report.name, column.name));
    text += fmt::format("  {:<{}}  {:<7}  {}{}\n", column.name, width, UnitName(column.unit),
                        column.shown == Shown::kDetail ? "(where there is room) " : "", meaning);
  }
  for (const ReportOption& option : kReportOptions) {
    if ((report.heeds & option.bit) != 0) text += fmt::format("Option: {}\n", option.name);
  }
  std::string columns;
  for (size_t i = 0; i < std::min<size_t>(3, table.columns.size()); ++i) {
    columns += (i == 0 ? " --columns " : ",") + table.columns[i].name;
  }
  text += fmt::format("Example: ranktap report {} {}{} --limit 10\n",
                      report.compare != nullptr ? "RUN1 RUN2" : "RUN", report.name, columns);
  return text;
}

const Report* HelpWanted(const std::vector<std::string>& arguments) {
  const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (std::ranges::none_of(arguments, is_help)) return nullptr;
  for (const std::string& word : arguments) {
    if (const Report* const report = FindReport(word)) return report;
  }
  return nullptr;
}

}  // namespace ranktap::collector
