#include "collector/report/text/table_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "collector/file/json.h"
#include "collector/report/human_units.h"
#include "collector/report/text/finding_text.h"
#include "collector/report/text/name_cut.h"
#include "collector/report/text/paragraph.h"
#include "collector/report/text/short_shapes.h"

namespace ranktap::collector {
namespace {

constexpr size_t kShortestText = 12;
// 40 characters tell most kernels and operators apart; 24 did not.
constexpr size_t kReadableName = 40;
// Our own words, "exposed transfer", are no longer: they are not cut.
constexpr size_t kOwnWords = 18;

struct TextColumn {
  bool is_text = false;
  bool detail = false;
  bool prose = false;
  bool wanted = false;
  bool empty = true;   // no cell says anything
  bool zero = true;    // nor any but 0
  bool wraps = false;  // its heading, between words
  bool sources = false, shapes = false;
  size_t width = 0;
  std::vector<std::string> cells;  // the heading first
};

bool IsNothing(const Cell& cell) {
  if (const auto* const text = std::get_if<std::string>(&cell)) return text->empty();
  if (const auto* const real = std::get_if<double>(&cell)) return *real == 0;
  const auto* const number = std::get_if<int64_t>(&cell);
  return number == nullptr || *number == 0;
}

// That nothing was lost is worth a column; that nothing took any time is not.
bool IsLeftOut(const TextColumn& column, Unit unit) {
  if (column.cells.size() < 2) return column.detail;
  if (column.wanted) return false;
  // As the ranks of processes that have none; an empty text was perhaps asked for.
  if (column.empty && unit == Unit::kCount) return true;
  return column.zero && (column.detail || (unit != Unit::kText && unit != Unit::kCount));
}

size_t WidestCell(const TextColumn& column) {
  size_t widest = 0;
  for (const std::string& cell : column.cells) widest = std::max(widest, TextWidth(cell));
  return widest;
}

std::vector<TextColumn> MakeColumns(const Table& table, size_t rows, TimeUnit time_unit) {
  const std::vector<std::string> headings = FormatHeadings(table, time_unit);
  std::vector<TextColumn> columns(table.columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    TextColumn& column = columns[c];
    column.is_text = table.columns[c].unit == Unit::kText;
    column.detail = table.columns[c].shown == Shown::kDetail;
    column.prose = table.columns[c].shown == Shown::kProse;
    column.wanted = table.columns[c].shown == Shown::kWanted;
    column.sources = IsSourceColumn(table.columns[c]);
    column.shapes = IsShapesColumn(table.columns[c]);
    column.cells.push_back(headings[c]);
    for (size_t r = 0; r < rows; ++r) {
      column.cells.push_back(FormatCellOf(table.columns[c], table.rows[r][c], time_unit));
      column.empty &= column.cells.back().empty() || column.cells.back() == "-";
      column.zero &= IsNothing(table.rows[r][c]);
    }
    column.width = WidestCell(column);
  }
  std::vector<TextColumn> shown;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (!IsLeftOut(columns[c], table.columns[c].unit)) shown.push_back(std::move(columns[c]));
  }
  return shown;
}

size_t TotalWidth(const std::vector<TextColumn>& columns) {
  return std::accumulate(columns.begin(), columns.end(), size_t{0},
                         [](size_t sum, const TextColumn& c) { return sum + c.width + 2; });
}

void Fit(std::vector<TextColumn>* columns, size_t width) {
  const auto is_detail = [](const TextColumn& column) { return column.detail; };
  // Long texts can be shortened; what cannot be is measured with them at their shortest.
  const auto least_width = [&] {
    size_t least = 0;
    bool is_named = false;
    for (const TextColumn& column : *columns) {
      const bool is_name = column.is_text && !column.prose && !std::exchange(is_named, true);
      const size_t text = is_name ? kReadableName : 2 * kShortestText;
      least += 2 + (column.is_text ? std::min(column.width, text) : column.width);
    }
    return least;
  };
  while (least_width() > width) {
    const auto last = std::find_if(columns->rbegin(), columns->rend(), is_detail);
    if (last == columns->rend()) break;
    columns->erase(std::next(last).base());
  }
  // Sentences first: they lose nothing. As narrow as names get they only where that is not enough.
  constexpr std::pair<bool, size_t> kInTurn[] = {
      {true, 2 * kShortestText}, {false, kShortestText}, {true, kShortestText}};
  for (const auto& [prose, shortest] : kInTurn) {
    while (TotalWidth(*columns) > width) {
      TextColumn* widest = nullptr;
      for (TextColumn& column : *columns) {
        if (!column.is_text || column.prose != prose || column.width <= shortest) continue;
        if (!prose && WidestCell(column) <= kOwnWords) continue;
        if (widest == nullptr || column.width > widest->width) widest = &column;
      }
      if (widest == nullptr) break;
      const size_t excess = TotalWidth(*columns) - width;
      widest->width = std::max(shortest, widest->width - std::min(widest->width, excess));
    }
  }
}

// The last resort: headings of several words take several lines.
void WrapHeadings(std::vector<TextColumn>* columns, size_t width) {
  const auto needed = [](const TextColumn& column) {
    size_t least = 0;
    for (size_t row = 1; row < column.cells.size(); ++row) {
      least = std::max(least, TextWidth(column.cells[row]));
    }
    std::string_view rest = column.cells[0];
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      least = std::max(least, TextWidth(word));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    return std::min(least, column.width);
  };
  for (size_t excess; (excess = TotalWidth(*columns)) > width;) {
    excess -= width;
    TextColumn* most = nullptr;
    size_t saving = 0;
    for (TextColumn& column : *columns) {
      if (column.width - needed(column) <= saving) continue;
      saving = column.width - needed(column);
      most = &column;
    }
    if (most == nullptr) return;
    most->width -= std::min(saving, excess);
    most->wraps = true;
  }
}

void ShortenShapes(TextColumn* column) {
  for (size_t row = 1; row < column->cells.size(); ++row) {
    column->cells[row] = ShortShapes(column->cells[row]);
  }
  column->width = WidestCell(*column);
}

void LimitWidths(const ColumnWidths& widths, std::vector<TextColumn>* columns) {
  for (TextColumn& column : *columns) {
    size_t most = column.is_text && !column.prose ? widths.names : 0;
    if (column.sources && widths.sources != 0) most = widths.sources;
    if (column.shapes && widths.shapes != 0) {
      most = widths.shapes;
      if (column.width > most) ShortenShapes(&column);
    }
    if (most != 0)
      column.width = std::min(column.width, std::max(most, TextWidth(column.cells[0])));
  }
}

// "~.transformer.h.2.mlp" where names would be cut and begin alike. The note about it, or nothing.
std::string ShortenPaths(TextColumn* column) {
  if (!column->is_text || column->prose || column->width >= WidestCell(*column)) return "";
  const std::string path = CommonPath({column->cells.begin() + 1, column->cells.end()});
  if (path.empty()) return "";
  for (std::string& cell : column->cells) {
    if (cell.starts_with(path)) cell.replace(0, path.size(), "~.");
  }
  column->width = std::min(column->width, WidestCell(*column));
  return fmt::format("~ is {}", path.substr(0, path.size() - 1));
}

// Names are cut no further than they are read, where columns follow below anyway.
void ReadableNamesInBlocks(std::vector<TextColumn>* columns, size_t width) {
  if (TotalWidth(*columns) <= width || width < 2 * kReadableName) return;
  for (TextColumn& column : *columns) {
    if (!column.is_text || column.prose) continue;
    column.width = std::max(column.width, std::min(WidestCell(column), kReadableName));
  }
}

// As many columns side by side as there is room for. The others follow below, beside the names
// again.
std::vector<std::vector<TextColumn>> Blocks(std::vector<TextColumn> columns, size_t width) {
  const auto is_name = [](const TextColumn& column) { return column.is_text && !column.prose; };
  std::vector<std::vector<TextColumn>> blocks(1);
  const auto name = std::ranges::find_if(columns, is_name);
  const std::vector<TextColumn> names(name, name == columns.end() ? name : name + 1);
  for (TextColumn& column : columns) {
    const bool is_full = TotalWidth(blocks.back()) + column.width + 2 > width;
    if (width != 0 && is_full && blocks.back().size() > names.size()) blocks.push_back(names);
    blocks.back().push_back(std::move(column));
  }
  return blocks;
}

// One line, or several where a sentence or a heading was broken.
std::string Line(const std::vector<TextColumn>& columns, size_t row) {
  std::vector<std::vector<std::string>> cells;
  size_t lines = 1;
  for (const TextColumn& column : columns) {
    const std::string& cell = column.cells[row];
    const bool in_lines = column.prose || (row == 0 && column.wraps);
    cells.push_back(in_lines ? Wrapped(cell, column.width) : std::vector{cell});
    lines = std::max(lines, cells.back().size());
  }
  std::string text;
  for (size_t i = 0; i < lines; ++i) {
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string cell = i < cells[c].size() ? cells[c][i] : "";
      const std::string pad(columns[c].width - std::min(columns[c].width, TextWidth(cell)), ' ');
      text += "  " + (columns[c].is_text ? cell + pad : pad + cell);
    }
    text.resize(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

Json ToJsonValue(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* number = std::get_if<int64_t>(&cell)) return *number;
  return nullptr;
}

std::string CsvCell(const Cell& cell, Unit unit, TimeUnit time_unit) {
  const auto* const ns = unit == Unit::kNs ? std::get_if<int64_t>(&cell) : nullptr;
  if (ns != nullptr) return CsvTime(*ns, time_unit);
  const auto* const text = std::get_if<std::string>(&cell);
  if (text == nullptr) {
    return std::holds_alternative<std::monostate>(cell) ? "" : WriteJson(ToJsonValue(cell));
  }
  std::string plain = PrintableCell(*text);
  if (plain.find_first_of(",\"") == std::string::npos) return plain;
  std::string quoted = "\"";
  for (const char byte : plain) quoted += byte == '"' ? "\"\"" : std::string(1, byte);
  return quoted + "\"";
}

size_t RowsShown(const Table& table, size_t limit) {
  return limit == 0 ? table.rows.size() : std::min(limit, table.rows.size());
}

}  // namespace

std::optional<Format> FormatNamed(std::string_view name) {
  if (name == "text") return Format::kText;
  if (name == "json") return Format::kJson;
  if (name == "csv") return Format::kCsv;
  if (name == "html") return Format::kHtml;
  return std::nullopt;
}

bool IsSourceColumn(const TableColumn& column) {
  return column.name == "source" || column.name == "line";
}

bool IsShapesColumn(const TableColumn& column) { return column.name == "input_shapes"; }

std::string FormatText(const Table& table, size_t width, size_t limit, const ColumnWidths& widths,
                       TimeUnit time_unit) {
  std::string text = Paragraph("", table.title, width);
  const size_t rows = RowsShown(table, limit);
  std::vector<std::string> paths;
  if (AreFindings(table)) {
    for (size_t row = 0; row < rows; ++row) text += FormatFinding(table, row, width, time_unit);
  } else if (!table.rows.empty()) {
    std::vector<TextColumn> columns = MakeColumns(table, rows, time_unit);
    for (TextColumn& column : columns) {
      if (column.shapes && width != 0 && TotalWidth(columns) > width) ShortenShapes(&column);
    }
    LimitWidths(widths, &columns);
    if (width != 0) {
      Fit(&columns, width);
      WrapHeadings(&columns, width);
      ReadableNamesInBlocks(&columns, width);
    }
    for (TextColumn& column : columns) {
      if (const std::string note = ShortenPaths(&column); !note.empty()) paths.push_back(note);
      if (column.prose) continue;
      std::string heading = column.cells[0];
      column.cells = CutNames(column.cells, column.width);
      if (column.wraps) column.cells[0] = std::move(heading);
    }
    const std::vector<std::vector<TextColumn>> blocks = Blocks(std::move(columns), width);
    for (const std::vector<TextColumn>& block : blocks) {
      for (size_t row = 0; row <= rows; ++row) text += Line(block, row);
    }
  }
  if (rows < table.rows.size()) {
    text += fmt::format("  ... and {} more\n",
                        FormatCount(static_cast<int64_t>(table.rows.size() - rows)));
  }
  for (const std::string& note : paths) text += Paragraph("  note: ", note, width);
  for (const std::string& note : table.notes) text += Paragraph("  note: ", note, width);
  return text;
}

std::string FormatJson(const Table& table, size_t limit) {
  Json object;
  object["schema"] = kTableSchema;
  object["name"] = table.name;
  object["title"] = table.title;
  object["columns"] = Json::array();
  for (const TableColumn& column : table.columns) {
    object["columns"].push_back({{"name", column.name}, {"unit", UnitName(column.unit)}});
  }
  object["rows"] = Json::array();
  for (size_t r = 0; r < RowsShown(table, limit); ++r) {
    Json row;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      row[table.columns[c].name] = ToJsonValue(table.rows[r][c]);
    }
    object["rows"].push_back(std::move(row));
  }
  object["notes"] = table.notes;
  return WriteJson(object, 1) + "\n";
}

std::string FormatCsv(const Table& table, size_t limit, TimeUnit time_unit) {
  std::string text;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    text += (c == 0 ? "" : ",") + CsvHeading(table.columns[c], time_unit);
  }
  text += "\n";
  for (size_t r = 0; r < RowsShown(table, limit); ++r) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      text += (c == 0 ? "" : ",") + CsvCell(table.rows[r][c], table.columns[c].unit, time_unit);
    }
    text += "\n";
  }
  return text;
}

}  // namespace ranktap::collector
