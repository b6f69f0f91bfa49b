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

// For people: units scaled, numbers to the right, control characters replaced. `width` 0: as wide
// as it gets; otherwise columns marked `detail` go first, then the widest texts are shortened in
// their middle. `limit` 0: all rows. Names are cut in their middle to `longest_name` characters; 0:
// they are not.
std::string FormatText(const Table& table, size_t width, size_t limit, size_t longest_name = 0,
                       TimeUnit time_unit = TimeUnit::kAuto);
// A pipe gets so many characters of a name, as torch's table(max_name_column_width=55) does.
inline constexpr size_t kLongestNameInPipe = 55;
// {"name", "title", "columns": [{"name", "unit"}], "rows": [{column: value}], "notes"}
std::string FormatJson(const Table& table, size_t limit);
// RFC 4180, with a header line. Notes are not in it. Texts as PrintableCell has them.
std::string FormatCsv(const Table& table, size_t limit, TimeUnit time_unit = TimeUnit::kAuto);

}  // namespace ranktap::collector
