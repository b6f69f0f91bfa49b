#include "collector/cli/table_html.h"

#include <algorithm>

#include "collector/cli/table_text.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kStyle =
    "<!doctype html><meta charset=\"utf-8\"><style>body{font:14px sans-serif;margin:2em}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;"
    "text-align:right}.text{text-align:left;max-width:60em;overflow-wrap:anywhere}"
    "h2{font-size:1.2em}p{color:#555}</style>\n";

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    switch (byte) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += byte;
    }
  }
  return out;
}

std::string Tag(std::string_view name, bool is_text, std::string_view content) {
  return "<" + std::string(name) + (is_text ? " class=\"text\">" : ">") + Escaped(content) + "</" +
         std::string(name) + ">";
}

}  // namespace

std::string FormatHtml(const Table& table, size_t limit) {
  std::string html(kStyle);
  html += "<h2>" + Escaped(Printable(table.title)) + "</h2>\n<table><tr>";
  for (const TableColumn& column : table.columns) {
    html += Tag("th", column.unit == Unit::kText, FormatHeading(column));
  }
  html += "</tr>\n";
  const size_t rows = limit == 0 ? table.rows.size() : std::min(limit, table.rows.size());
  for (size_t r = 0; r < rows; ++r) {
    html += "<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Unit unit = table.columns[c].unit;
      html += Tag("td", unit == Unit::kText, FormatCell(table.rows[r][c], unit));
    }
    html += "</tr>\n";
  }
  html += "</table>\n";
  for (const std::string& note : table.notes) html += "<p>" + Escaped(Printable(note)) + "</p>\n";
  return html;
}

}  // namespace ranktap::collector
