// How `ranktap report` shows a table: which rows and columns, in which order, how wide, in which
// unit and format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/report/table.h"
#include "collector/report/text/table_text.h"
#include "collector/terminal/arguments.h"

namespace ranktap::collector {

struct TableView {
  Format format = Format::kText;
  std::optional<int64_t> limit;  // 0: all rows; none: not said
  std::vector<std::string> where, columns;
  std::string sort_by, time_unit = "auto";
  std::optional<int64_t> width;  // 0: as wide as it gets; none: the terminal's
  bool full_names = false;
  bool verbose = false;  // notes that otherwise are one
  std::string header;    // a line above each table
  // The most characters of a column of lines and stacks, and of one of shapes; 0: not said.
  int64_t source_width = 0, shapes_width = 0;
};

// The options that fill `view`, but for --format. It lives as long as `app`.
void AddViewOptions(Arguments* app, TableView* view);

// False, after a complaint: what is asked for does not go together.
bool IsPossible(const TableView& view);

// Rows and columns. False, after a complaint: a column is asked for that the table does not have.
bool Select(const TableView& view, Table* table);

// To stdout, notes of CSV to stderr; at most `limit` rows.
void Print(const Table& table, const TableView& view, size_t limit);

}  // namespace ranktap::collector
