// Every report answers with this: named columns with units, rows of cells. Text, JSON and CSV are
// made from it in one place (report/text/table_text.h), so that no report prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ranktap::collector {

enum class Unit : uint8_t {
  kText,
  kCount,
  kNs,
  kBytes,
  kPercent,
  kFlops,  // floating point operations
  kFlopsPerSecond,
  kGbPerSecond,
};

// As in JSON, in the page and in --help NAME.
inline std::string_view UnitName(Unit unit) {
  constexpr std::string_view kNames[] = {"text",    "count", "ns",      "bytes",
                                         "percent", "flops", "flops/s", "GB/s"};
  return kNames[static_cast<size_t>(unit)];
}

// How text shows a column where the table would be wider than the terminal.
enum class Shown : uint8_t {
  kAlways,
  kDetail,  // it is left out
  kWanted,  // somebody asked for it by name: also where it holds nothing but zeros
  kProse,   // its sentences are broken over lines and never cut
};

struct TableColumn {
  std::string name;  // as in JSON and CSV, with its unit: "total_ns"
  Unit unit = Unit::kText;
  Shown shown = Shown::kAlways;
  // Names that --sort and --where take for it too, as of another tool.
  std::vector<std::string> also = {};
  std::string meaning = {};  // a sentence, for --help NAME
};

// monostate: no value.
using Cell = std::variant<std::monostate, std::string, int64_t, double>;

struct Table {
  std::string name;  // as in the registry, which sets it
  std::string title;
  std::vector<TableColumn> columns;
  std::vector<std::vector<Cell>> rows;
  // Sentences that belong under the table: what is missing, what a column leaves out.
  std::vector<std::string> notes;
};

}  // namespace ranktap::collector
