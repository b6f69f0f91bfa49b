// A description (facts/numbers/describe.h) as columns of a table.
#pragma once

#include <string>

#include "collector/facts/numbers/describe.h"
#include "collector/report/columns.h"

namespace ranktap::collector {

// In whole ns where that is the unit. Nothing where there were fewer values than `least`.
Cell DescriptionCell(const Description& of, double Description::*number, Unit unit,
                     size_t least = 1);

// Columns meanSUFFIX, stdSUFFIX, ..., all in one unit, of a member of the row. `what` says what is
// described: "lengths".
template <typename Row, Description Row::*kOf, Unit kUnit>
ColumnsOf<Row> DescriptionColumns(const std::string& suffix, const std::string& what) {
  using D = Description;
  return {
      {"mean" + suffix, kUnit, "The mean of the " + what + ".",
       [](const Row& row) { return DescriptionCell(row.*kOf, &D::mean, kUnit); }},
      {"std" + suffix, kUnit, "The sample standard deviation of the " + what + ".",
       [](const Row& row) { return DescriptionCell(row.*kOf, &D::deviation, kUnit, 2); },
       Shown::kDetail},
      {"min" + suffix, kUnit, "The smallest of the " + what + ".",
       [](const Row& row) { return DescriptionCell(row.*kOf, &D::min, kUnit); }, Shown::kDetail},
      {"p25" + suffix, kUnit, "A quarter of the " + what + " is below this.",
       [](const Row& row) { return DescriptionCell(row.*kOf, &D::quarter, kUnit); },
       Shown::kDetail},
      {"p50" + suffix, kUnit, "Half of the " + what + " is below this.",
       [](const Row& row) { return DescriptionCell(row.*kOf, &D::median, kUnit); }},
      {"p75" + suffix, kUnit, "Three quarters of the " + what + " are below this.",
       [](const Row& row) { return DescriptionCell(row.*kOf, &D::three_quarters, kUnit); },
       Shown::kDetail},
      {"max" + suffix, kUnit, "The largest of the " + what + ".",
       [](const Row& row) { return DescriptionCell(row.*kOf, &D::max, kUnit); }},
  };
}

}  // namespace ranktap::collector
