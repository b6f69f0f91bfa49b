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

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return Quantile(values, 0.5);
}

Description Describe(std::vector<double> values) {
  Description description;
  description.count = values.size();
  if (values.empty()) return description;
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  description.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) {
    squares += (value - description.mean) * (value - description.mean);
  }
  description.deviation = values.size() < 2 ? 0 : std::sqrt(squares / (count - 1));
  description.min = values.front();
  description.quarter = Quantile(values, 0.25);
  description.median = Quantile(values, 0.5);
  description.three_quarters = Quantile(values, 0.75);
  description.max = values.back();
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
