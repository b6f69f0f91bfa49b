// A table as text, JSON or CSV.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "collector/file/printable.h"
#include "collector/report/table.h"
#include "collector/report/text/cell_text.h"

namespace ranktap::collector {

enum class Format { kText, kJson, kCsv, kHtml };
std::optional<Format> FormatNamed(std::string_view name);

// The most characters of a text in its column; 0: no limit but the table's.
struct ColumnWidths {
  size_t names = 0;    // of all but sentences, where the others say nothing
  size_t sources = 0;  // lines of the program and stacks
  size_t shapes = 0;   // of inputs
};
// What a column of sources, or of shapes, is named.
bool IsSourceColumn(const TableColumn& column);
bool IsShapesColumn(const TableColumn& column);

// For people: units scaled, numbers to the right, control characters replaced. `width` 0: as wide
// as it gets; otherwise columns marked `detail` go first, shapes are written short (ShortShapes),
// then the widest texts are shortened in their middle, to `widths` at most. `limit` 0: all rows.
std::string FormatText(const Table& table, size_t width, size_t limit,
                       const ColumnWidths& widths = {}, TimeUnit time_unit = TimeUnit::kAuto);
// A pipe gets so many characters of a name, as torch's table(max_name_column_width=55) does.
inline constexpr size_t kLongestNameInPipe = 55;
// docs/schema/README.md promises what a change of the number means.
inline constexpr std::string_view kTableSchema = "ranktap.table/1";
// {"schema", "name", "title", "columns": [{"name", "unit"}], "rows": [{column: value}], "notes"}
std::string FormatJson(const Table& table, size_t limit);
// RFC 4180, with a header line. Notes are not in it. Texts as PrintableCell has them.
std::string FormatCsv(const Table& table, size_t limit, TimeUnit time_unit = TimeUnit::kAuto);

}  // namespace ranktap::collector
