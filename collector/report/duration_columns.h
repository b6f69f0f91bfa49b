// Durations (facts/numbers/duration_distribution.h) as columns of a table.
#pragma once

#include <string>

#include "collector/report/columns.h"

namespace ranktap::collector {

// Columns PREFIXmean_ns, PREFIXmedian_ns, ... of the DurationDistribution that `TimeOf`, a lambda
// without captures, takes from a row. `what` says whose durations they are: "calls".
template <typename Row, typename TimeOf>
ColumnsOf<Row> DurationColumns(const std::string& prefix, const std::string& what, TimeOf,
                               Shown mean = Shown::kAlways) {
  const std::string of = " duration of the " + what + ".";
  return {
      {prefix + "mean_ns", Unit::kNs, "The mean" + of,
       [](const Row& row) { return TimeOf{}(row).mean_ns(); }, mean},
      {prefix + "median_ns", Unit::kNs, "The median" + of,
       [](const Row& row) { return TimeOf{}(row).median_ns(); }, Shown::kDetail},
      {prefix + "p95_ns", Unit::kNs, "The duration that 95 % of the " + what + " do not exceed.",
       [](const Row& row) { return TimeOf{}(row).p95_ns(); }, Shown::kDetail},
      {prefix + "stddev_ns", Unit::kNs,
       "The sample standard deviation of the durations of the " + what + ".",
       [](const Row& row) { return TimeOf{}(row).stddev_ns(); }, Shown::kDetail},
      {prefix + "min_ns", Unit::kNs, "The shortest" + of,
       [](const Row& row) { return TimeOf{}(row).shortest_ns(); }, Shown::kDetail},
      {prefix + "max_ns", Unit::kNs, "The longest" + of,
       [](const Row& row) { return TimeOf{}(row).max_ns; }, Shown::kDetail},
  };
}

}  // namespace ranktap::collector
