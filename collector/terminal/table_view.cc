#include "collector/terminal/table_view.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "collector/report/human_units.h"
#include "collector/report/table_filter.h"
#include "collector/report/text/finding_text.h"
#include "collector/report/text/table_html.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/output_style.h"
#include "collector/terminal/pager.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kNarrowest = 40, kNarrowestText = 12, kWidest = 10'000;

std::string Text(const Table& table, const TableView& view, size_t limit) {
  const bool is_whole = view.full_names || view.width == 0;
  const size_t width = is_whole     ? kUnlimitedWidth
                       : view.width ? static_cast<size_t>(*view.width)
                                    : ScreenWidth();
  const bool in_pipe = width == kUnlimitedWidth && !is_whole;
  const ColumnWidths widths = {.names = in_pipe ? kLongestNameInPipe : 0,
                               .sources = static_cast<size_t>(view.source_width),
                               .shapes = static_cast<size_t>(view.shapes_width)};
  const std::string header = view.header.empty() ? "" : Printable(view.header) + "\n";
  const std::string text =
      header + FormatText(table, width, limit, widths, *TimeUnitNamed(view.time_unit));
  return IsColored(STDOUT_FILENO) ? ColoredTable(text, !table.rows.empty() && !AreFindings(table))
                                  : text;
}

// False, after a complaint: a width is given of columns that the table does not have.
bool HasColumnsOf(const TableView& view, const Table& table) {
  const auto has = [&](bool (*is_one)(const TableColumn&), int64_t width, std::string_view option) {
    if (width == 0 || std::ranges::any_of(table.columns, is_one)) return true;
    Complain(fmt::format("{}: {} has no such column", option, table.name));
    return false;
  };
  return has(&IsSourceColumn, view.source_width, "--max-src-width") &&
         has(&IsShapesColumn, view.shapes_width, "--max-shapes-width");
}

}  // namespace

void AddViewOptions(Arguments* app, TableView* view) {
  app->Add("--limit", &view->limit,
           "at most this many rows; 0: all. Default: all, and 10 of each where text shows several")
      .From(0, 1'000'000'000);
  app->Add("--where", &view->where,
           "only rows for which COLUMN OP VALUE holds (= != < <= > >= ~ !~); may be repeated")
      .Repeatable();
  app->Add(
      "--sort", &view->sort_by,
      "by this column, the largest first (-COLUMN: the smallest); ops: also by torch's keys, as "
      "self_cpu_time_total");
  app->Add("--columns", &view->columns, "only these columns, in this order: name,calls,total_ns")
      .Repeatable()
      .CommaSeparated();
  app->Add("--time-unit", &view->time_unit,
           "text, csv, html: all times in ns, us, ms or s, to the ns; auto: each in what suits it, "
           "csv in ns")
      .OneOf({"auto", "ns", "us", "ms", "s"})
      .ShowsDefault();
  const auto full_names =
      app->AddFlag("--full-names", &view->full_names,
                   "text: no name is cut, as wide as that takes; else at 55 characters in a pipe");
  app->Add("--width", &view->width,
           "text: as for a terminal of this many columns (40 or more); 0: as --full-names")
      .From(0, kWidest)
      .Excludes(full_names);
  app->Add("--max-src-width", &view->source_width,
           "text: lines of the program and Python stacks take this many columns at most")
      .From(kNarrowestText, kWidest);
  app->Add("--max-shapes-width", &view->shapes_width,
           "text: shapes of inputs take this many columns at most")
      .From(kNarrowestText, kWidest);
  app->Add("--header", &view->header, "text: a line above each table");
  app->AddFlag("--verbose", &view->verbose, "text: insights lists the rules that were not checked");
}

bool IsPossible(const TableView& view) {
  if (view.width && *view.width != 0 && *view.width < kNarrowest) {
    Complain("--width takes 40 or more, or 0 for as wide as the table gets");
    return false;
  }
  const bool is_for_text = !view.header.empty() || view.source_width != 0 || view.shapes_width != 0;
  if (is_for_text && view.format != Format::kText) {
    Complain("--header, --max-src-width and --max-shapes-width are for text");
    return false;
  }
  // Its columns are named "total_ns": a reader of JSON counts on that.
  if (view.format != Format::kJson || view.time_unit == "auto" || view.time_unit == "ns") {
    return true;
  }
  Complain("--time-unit is for text, csv and html; times in json are ns");
  return false;
}

bool Select(const TableView& view, Table* table) {
  const auto is_done = [](const Result<bool>& result) {
    if (!result) Complain(result.message());
    return result.ok();
  };
  for (const std::string& condition : view.where) {
    const size_t before = table->rows.size();
    if (!is_done(KeepWhere(condition, table))) return false;
    if (before == 0 || !table->rows.empty()) continue;
    table->notes.insert(table->notes.begin(),
                        fmt::format("none of {} has {}", Counted(before, "row"), condition));
  }
  if (view.format == Format::kText && !view.verbose) {
    table->notes = WithoutUncheckedRules(table->notes);
  }
  if (!HasColumnsOf(view, *table)) return false;
  if (!view.sort_by.empty() && !is_done(SortBy(view.sort_by, table))) return false;
  return view.columns.empty() || is_done(KeepColumns(view.columns, table));
}

void Print(const Table& table, const TableView& view, size_t limit) {
  const TimeUnit time_unit = *TimeUnitNamed(view.time_unit);
  std::string text;
  switch (view.format) {
    case Format::kText:
      text = Text(table, view, limit);
      break;
    case Format::kJson:
      text = FormatJson(table, limit);
      break;
    case Format::kCsv:
      text = FormatCsv(table, limit, time_unit);
      for (const std::string& note : table.notes) Complain(Printable(note));
      break;
    case Format::kHtml:
      text = FormatHtml(table, limit, time_unit);
      break;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace ranktap::collector
