// A description (analysis/numbers/describe.h) as columns of a table.
#pragma once

#include <string>
#include <vector>

#include "collector/analysis/numbers/describe.h"
#include "collector/report/table.h"

namespace ranktap::collector {

// Columns meanSUFFIX, stdSUFFIX, ... all in `unit`, and their cells: nothing where there were no
// values, no deviation of fewer than two.
void AddDescriptionColumns(const std::string& suffix, Unit unit, std::vector<TableColumn>* columns);
void AddDescriptionCells(const Description& description, Unit unit, std::vector<Cell>* row);

}  // namespace ranktap::collector
