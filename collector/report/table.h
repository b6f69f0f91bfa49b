// What every analysis answers with: named columns with units, rows of cells. Text, JSON and CSV are
// made from it in one place (report/text/table_text.h), so that no analysis prints.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ranktap::collector {

enum class Unit : uint8_t { kText, kCount, kNs, kBytes, kPercent };

struct TableColumn {
  std::string name;  // as in JSON and CSV, with its unit: "total_ns"
  Unit unit = Unit::kText;
  bool detail = false;  // text leaves it out where the table would not fit otherwise
  bool prose = false;   // sentences: text breaks them over lines and never cuts them
};

// monostate: no value.
using Cell = std::variant<std::monostate, std::string, int64_t, double>;

struct Table {
  std::string name;
  std::string title;
  std::vector<TableColumn> columns;
  std::vector<std::vector<Cell>> rows;
  // Sentences that belong under the table: what is missing, what a column leaves out.
  std::vector<std::string> notes;
};

}  // namespace ranktap::collector
