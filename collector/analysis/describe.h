// What pandas.DataFrame.describe() says of a list of numbers: count, mean, sample deviation,
// extremes, quartiles by linear interpolation.
#pragma once

#include <cstddef>
#include <vector>

#include "collector/analysis/table.h"

namespace ranktap::collector {

struct Description {
  size_t count = 0;
  double mean = 0, deviation = 0, min = 0, quarter = 0, median = 0, three_quarters = 0, max = 0;
};

Description Describe(std::vector<double> values);
double Quantile(const std::vector<double>& sorted, double q);  // of at least one
double Median(std::vector<double> values);                     // 0 of none

// Columns PREFIXcount, PREFIXmean, ... all in `unit`, and their cells: nothing where there were no
// values, no deviation of fewer than two.
void AddDescriptionColumns(const std::string& suffix, Unit unit, std::vector<TableColumn>* columns);
void AddDescriptionCells(const Description& description, Unit unit, std::vector<Cell>* row);

}  // namespace ranktap::collector
