// A table declared by its columns: one line says a column's name, unit, meaning, cells and how it
// is shown.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "collector/report/table.h"

namespace ranktap::collector {

// Meanings of columns that most tables have.
inline constexpr const char* kRankMeaning = "The rank, as the launcher numbers it.";
inline constexpr const char* kDeviceMeaning = "The number or name of the device.";

// A column of a table with a row for each Row. `cell` is a lambda without captures that takes a
// const Row& and returns what a Cell can hold; what a cell needs beyond the row belongs to the Row.
template <typename Row>
class ColumnOf {
 public:
  template <typename CellOf>
  ColumnOf(std::string name, Unit unit, std::string meaning, CellOf, Shown shown = Shown::kAlways)
      : heading_{std::move(name), unit, shown, {}, std::move(meaning)},
        cell_([](const Row& row) -> Cell { return CellOf{}(row); }) {}

  const TableColumn& heading() const { return heading_; }
  Cell operator()(const Row& row) const { return cell_(row); }

 private:
  TableColumn heading_;
  Cell (*cell_)(const Row& row);
};

template <typename Row>
using ColumnsOf = std::vector<ColumnOf<Row>>;

// The columns of all parts, one part after the other.
template <typename Row>
ColumnsOf<Row> JoinedColumns(std::initializer_list<ColumnsOf<Row>> parts) {
  ColumnsOf<Row> columns;
  for (const ColumnsOf<Row>& part : parts) columns.insert(columns.end(), part.begin(), part.end());
  return columns;
}

template <typename Row, typename Rows>
Table TableOf(std::string title, const ColumnsOf<Row>& columns, const Rows& rows) {
  Table table{.title = std::move(title)};
  for (const ColumnOf<Row>& column : columns) table.columns.push_back(column.heading());
  for (const Row& row : rows) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    cells.reserve(columns.size());
    for (const ColumnOf<Row>& column : columns) cells.push_back(column(row));
  }
  return table;
}

}  // namespace ranktap::collector
