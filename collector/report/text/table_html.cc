#include "collector/report/text/table_html.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/file/markup_text.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kStyle =
    "<!doctype html><meta charset=\"utf-8\"><style>body{font:14px sans-serif;margin:2em}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;"
    "text-align:right;vertical-align:top}td{white-space:nowrap}th{vertical-align:bottom}"
    ".text{text-align:left}.long{white-space:normal;min-width:24em;max-width:60em}"
    ".long div{overflow-wrap:anywhere;overflow:hidden;display:-webkit-box;-webkit-line-clamp:3;"
    "-webkit-box-orient:vertical}section{overflow-x:auto}h2{font-size:1.2em}p{color:#555}"
    "</style>\n";
constexpr size_t kLong = 40;  // bytes: of a text that may take several lines

std::string Tag(std::string_view name, bool is_text, std::string_view content) {
  return "<" + std::string(name) + (is_text ? " class=\"text\">" : ">") + MarkupText(content) +
         "</" + std::string(name) + ">";
}

// A long text shows three lines, and all of it when it is pointed at.
std::string LongCell(std::string_view text) {
  const std::string escaped = MarkupText(text);
  return "<td class=\"text long\" title=\"" + escaped + "\"><div>" + escaped + "</div></td>";
}

}  // namespace

std::string FormatHtml(const Table& table, size_t limit, TimeUnit time_unit) {
  std::string html(kStyle);
  html += "<h2>" + MarkupText(table.title) + "</h2>\n<section><table><tr>";
  const std::vector<std::string> headings = FormatHeadings(table, time_unit);
  for (size_t c = 0; c < headings.size(); ++c) {
    html += Tag("th", table.columns[c].unit == Unit::kText, headings[c]);
  }
  html += "</tr>\n";
  const size_t rows = limit == 0 ? table.rows.size() : std::min(limit, table.rows.size());
  for (size_t r = 0; r < rows; ++r) {
    html += "<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Unit unit = table.columns[c].unit;
      const std::string text = FormatCellOf(table.columns[c], table.rows[r][c], time_unit);
      html += unit == Unit::kText && text.size() > kLong ? LongCell(text)
                                                         : Tag("td", unit == Unit::kText, text);
    }
    html += "</tr>\n";
  }
  html += "</table></section>\n";
  if (rows < table.rows.size()) {
    html += fmt::format("<p>... and {} more</p>\n",
                        FormatCount(static_cast<int64_t>(table.rows.size() - rows)));
  }
  for (const std::string& note : table.notes) html += "<p>" + MarkupText(note) + "</p>\n";
  return html;
}

}  // namespace ranktap::collector
