// A list of numbers as pandas.DataFrame.describe() describes it: count, mean, sample deviation,
// extremes, quartiles by linear interpolation.
#pragma once

#include <cstddef>
#include <vector>

namespace ranktap::collector {

struct Description {
  size_t count = 0;
  double mean = 0, deviation = 0, min = 0, quarter = 0, median = 0, three_quarters = 0, max = 0;
};

Description Describe(std::vector<double> values);
double Quantile(const std::vector<double>& sorted, double q);  // of at least one
double Median(std::vector<double> values);                     // 0 of none

}  // namespace ranktap::collector
