// Cells of a table by the names of their columns.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "collector/report/table.h"

namespace ranktap::collector {

inline size_t ColumnNamed(const Table& table, const std::string& name) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name == name) return i;
  }
  ADD_FAILURE() << table.name << " has no column " << name;
  return 0;
}

template <typename T>
T CellAt(const Table& table, size_t row, const std::string& column) {
  return std::get<T>(table.rows.at(row).at(ColumnNamed(table, column)));
}

// The first row whose `column` says `value`.
template <typename T>
size_t RowWith(const Table& table, const std::string& column, const T& value) {
  const size_t c = ColumnNamed(table, column);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const T* const cell = std::get_if<T>(&table.rows[row][c]);
    if (cell != nullptr && *cell == value) return row;
  }
  ADD_FAILURE() << table.name << " has no row with this " << column;
  return 0;
}

}  // namespace ranktap::collector
