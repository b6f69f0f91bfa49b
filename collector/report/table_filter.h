// Rows of a table by what is in them, and its columns by name: --where, --sort and --columns.
#pragma once

#include <string>
#include <vector>

#include "collector/file/result.h"
#include "collector/report/table.h"

namespace ranktap::collector {

// Leaves the rows for which CONDITION holds: "COLUMN OP VALUE", with or without spaces. OP: = != <
// <= > >= compare numbers in the column's unit (or with it: 10ms, 2MiB), or texts; ~ and !~ look
// for VALUE in a text. Cells without a value satisfy != and !~ only. An error names the columns
// there are.
Result<bool> KeepWhere(const std::string& condition, Table* table);

// By COLUMN, the largest first, texts from a to z; "-COLUMN" the other way round. Equal rows keep
// their order; cells without a value come last.
Result<bool> SortBy(const std::string& column, Table* table);

// Leaves these columns, in this order; one that is named twice is there once. Text shows them all,
// whatever is in them. An error names the columns there are.
Result<bool> KeepColumns(const std::vector<std::string>& columns, Table* table);

}  // namespace ranktap::collector
