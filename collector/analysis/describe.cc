#include "collector/analysis/describe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ranktap::collector {

double Quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

namespace {

// Quantile() of values in any order; puts them in another.
double Select(std::vector<double>* values, double q) {
  const double at = q * static_cast<double>(values->size() - 1);
  const auto low = values->begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(values->begin(), low, values->end());
  if (std::next(low) == values->end()) return *low;
  const double high = *std::min_element(std::next(low), values->end());
  return *low + (high - *low) * (at - std::floor(at));
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  return Select(&values, 0.5);
}

Description Describe(std::vector<double> values) {
  Description description;
  description.count = values.size();
  if (values.empty()) return description;
  const auto count = static_cast<double>(values.size());
  description.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) {
    squares += (value - description.mean) * (value - description.mean);
  }
  description.deviation = values.size() < 2 ? 0 : std::sqrt(squares / (count - 1));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  description.min = *least;
  description.max = *most;
  description.median = Select(&values, 0.5);
  description.quarter = Select(&values, 0.25);
  description.three_quarters = Select(&values, 0.75);
  return description;
}

void AddDescriptionColumns(const std::string& suffix, Unit unit,
                           std::vector<TableColumn>* columns) {
  for (const char* const name : {"mean", "std", "min", "p25", "p50", "p75", "max"}) {
    const bool detail = std::string_view(name) != "mean" && std::string_view(name) != "p50" &&
                        std::string_view(name) != "max";
    columns->push_back({name + suffix, unit, detail});
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
