#include "collector/terminal/report_help.h"

#include <fmt/format.h>

#include <algorithm>

#include "collector/report/report_groups.h"
#include "collector/report/text/table_text.h"

namespace ranktap::collector {
namespace {

// In the group, and not among the first six.
bool IsLater(const Report& report, ReportGroup group) {
  return report.group == group && std::ranges::count(kFirstReports, report.name) == 0;
}

// Columns are the same for every run, so those of a run without ranks are asked for.
std::string ColumnLines(const Report& report, Table* table) {
  const Run nothing;
  *table = report.compare != nullptr ? report(nothing, nothing) : report(nothing);
  size_t width = 0;
  for (const TableColumn& column : table->columns) width = std::max(width, column.name.size());
  std::string text;
  for (const TableColumn& column : table->columns) {
    text +=
        fmt::format("  {:<{}}  {:<7}  {}{}\n", column.name, width, UnitName(column.unit),
                    column.shown == Shown::kDetail ? "(where there is room) " : "", column.meaning);
  }
  return text;
}

}  // namespace

std::string ReportsHelp() {
  size_t width = 0;
  for (const Report& report : AllReports()) width = std::max(width, report.name.size());
  const auto line = [width](const Report& report) {
    return fmt::format("  {:<{}}  {}\n", report.name, width, report.question);
  };
  std::string text =
      "Reports (without a name: the verdict and a summary; --help NAME: its columns)\n\n"
      "Start with one of these six:\n";
  for (const std::string_view name : kFirstReports) text += line(*FindReport(name));
  for (const ReportGroupWords& group : kReportGroups) {
    text += fmt::format("\n{}: {}\n", group.name, group.question);
    for (const Report& report : AllReports()) {
      if (IsLater(report, group.group)) text += line(report);
    }
  }
  return text;
}

std::string WaysHelp() {
  std::string text;
  for (const Report& report : AllReports()) {
    const std::vector<std::string_view> ways = WaysOf(report);
    if (ways.empty()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", report.name, fmt::join(ways, ", "));
  }
  return text;
}

std::string FirstReportsHelp() {
  std::string text = "Reports of `ranktap report RUN NAME`; these six first:\n";
  for (const std::string_view name : kFirstReports) {
    text += fmt::format("  {:<13}  {}\n", name, FindReport(name)->question);
  }
  constexpr size_t kWidest = 80, kIndent = 13;
  for (const ReportGroupWords& group : kReportGroups) {
    std::string row = fmt::format("  {:<{}}", group.name, kIndent);
    for (const Report& report : AllReports()) {
      if (!IsLater(report, group.group)) continue;
      if (row.size() + 2 + report.name.size() > kWidest) {
        text += row + "\n";
        row = std::string(kIndent + 2, ' ');
      }
      row += fmt::format("  {}", report.name);
    }
    text += row + "\n";
  }
  return text + "  `ranktap report --help` says what each answers.\n";
}

std::string ColumnsHelp(const Report& report) {
  Table table, of_way;
  std::string text = fmt::format("{}\nColumns:\n", report.question) + ColumnLines(report, &table);
  for (const std::string_view by : WaysOf(report)) {
    const Report* const way = ReportBy(report, by);
    if (way == nullptr) continue;
    text +=
        fmt::format("Columns with --by {}: {}\n", by, way->question) + ColumnLines(*way, &of_way);
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
