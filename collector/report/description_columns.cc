#include "collector/report/description_columns.h"

#include <cmath>
#include <cstdint>
#include <string_view>

namespace ranktap::collector {

void AddDescriptionColumns(const std::string& suffix, Unit unit,
                           std::vector<TableColumn>* columns) {
  for (const char* const name : {"mean", "std", "min", "p25", "p50", "p75", "max"}) {
    const bool detail = std::string_view(name) != "mean" && std::string_view(name) != "p50" &&
                        std::string_view(name) != "max";
    columns->push_back({name + suffix, unit, detail ? Shown::kDetail : Shown::kAlways});
  }
}

void AddDescriptionCells(const Description& description, Unit unit, std::vector<Cell>* row) {
  const auto cell = [unit](double value) {
    return unit == Unit::kNs ? Cell(static_cast<int64_t>(std::llround(value))) : Cell(value);
  };
  const bool none = description.count == 0;
  row->push_back(none ? Cell() : cell(description.mean));
  row->push_back(description.count < 2 ? Cell() : cell(description.deviation));
  for (const double value : {description.min, description.quarter, description.median,
                             description.three_quarters, description.max}) {
    row->push_back(none ? Cell() : cell(value));
  }
}

}  // namespace ranktap::collector
