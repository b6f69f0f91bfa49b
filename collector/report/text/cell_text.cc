#include "collector/report/text/cell_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "collector/file/printable.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

struct TimeScale {
  std::string_view name;
  TimeUnit unit;
  int64_t ns;
  int decimals;
};
constexpr TimeScale kScales[] = {{"auto", TimeUnit::kAuto, 1, 0},
                                 {"ns", TimeUnit::kNs, 1, 0},
                                 {"us", TimeUnit::kUs, 1'000, 3},
                                 {"ms", TimeUnit::kMs, 1'000'000, 6},
                                 {"s", TimeUnit::kS, 1'000'000'000, 9}};

const TimeScale& ScaleOf(TimeUnit unit) { return kScales[static_cast<size_t>(unit)]; }

// "1,234.567" of 1234567 ns in us.
std::string FixedTime(int64_t ns, TimeUnit unit, bool thousands_apart) {
  const TimeScale& scale = ScaleOf(unit);
  const int64_t whole = ns / scale.ns, part = std::abs(ns % scale.ns);
  std::string text = thousands_apart ? FormatCount(whole) : std::to_string(whole);
  if (whole == 0 && ns < 0) text.insert(0, "-");
  return scale.decimals == 0 ? text : fmt::format("{}.{:0{}}", text, part, scale.decimals);
}

// "1234.5", "0.0271": at least four digits, never an exponent.
std::string FormatReal(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  char text[64];
  const int decimals = size >= 1000 ? 1 : size >= 1 ? 3 : 5;
  std::snprintf(text, sizeof text, size < 1e15 ? "%.*f" : "%.*g", decimals, value);
  return text;
}

// "total_ns" -> "total": the unit is in the cells.
std::string WithoutUnit(const TableColumn& column) {
  std::string name = column.name;
  for (const std::string_view suffix : {"_ns", "_percent", "_bytes"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  // Bandwidths have no scale of their own in the cells.
  std::string unit;
  if (constexpr std::string_view kRate = "gb_per_s"; name.ends_with(kRate)) {
    name.resize(name.size() - kRate.size());
    unit = "GB/s";
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  return name + unit;
}

// Whether a column of texts has this heading: "kernel" beside kernel_ns.
bool IsText(const Table& table, const std::vector<std::string>& headings,
            std::string_view heading) {
  for (size_t c = 0; c < headings.size(); ++c) {
    if (headings[c] == heading && table.columns[c].unit == Unit::kText) return true;
  }
  return false;
}

}  // namespace

std::optional<TimeUnit> TimeUnitNamed(std::string_view name) {
  for (const TimeScale& scale : kScales) {
    if (scale.name == name) return scale.unit;
  }
  return std::nullopt;
}

std::string FormatCell(const Cell& cell, Unit unit, TimeUnit time_unit) {
  if (std::holds_alternative<std::monostate>(cell)) return "-";
  if (const auto* text = std::get_if<std::string>(&cell)) return Printable(*text);
  if (const auto* real = std::get_if<double>(&cell)) {
    return unit == Unit::kPercent ? FormatPercent(*real) : FormatReal(*real);
  }
  const int64_t value = std::get<int64_t>(cell);
  if (unit == Unit::kNs) {
    return time_unit == TimeUnit::kAuto ? FormatNs(value) : FixedTime(value, time_unit, true);
  }
  if (unit == Unit::kBytes) return FormatSignedBytes(value);
  if (unit == Unit::kFlops || unit == Unit::kFlopsPerSecond) return FormatFlops(value);
  return FormatCount(value);
}

std::string FormatCellOf(const TableColumn& column, const Cell& cell, TimeUnit time_unit) {
  constexpr std::string_view kNumbersOfThings[] = {"correlation", "pid", "thread", "tid"};
  const auto* const number = std::get_if<int64_t>(&cell);
  if (number != nullptr &&
      std::ranges::find(kNumbersOfThings, column.name) != std::end(kNumbersOfThings)) {
    return std::to_string(*number);
  }
  return FormatCell(cell, column.unit, time_unit);
}

std::vector<std::string> FormatHeadings(const Table& table, TimeUnit time_unit) {
  std::vector<std::string> headings;
  for (const TableColumn& column : table.columns) headings.push_back(WithoutUnit(column));
  const std::vector<std::string> plain = headings;
  for (size_t c = 0; c < headings.size(); ++c) {
    const Unit unit = table.columns[c].unit;
    const bool is_shared = std::ranges::count(plain, plain[c]) > 1;
    if (unit == Unit::kNs && time_unit != TimeUnit::kAuto) {
      headings[c] += fmt::format(" ({})", ScaleOf(time_unit).name);
    } else if (unit == Unit::kNs && is_shared && IsText(table, plain, plain[c])) {
      headings[c] += " time";
    } else if (unit == Unit::kPercent && is_shared) {
      headings[c] += " %";
    } else if (unit == Unit::kBytes && is_shared && table.columns[c].name.ends_with("_bytes")) {
      headings[c] += " bytes";
    }
  }
  return headings;
}

std::string CsvTime(int64_t ns, TimeUnit time_unit) { return FixedTime(ns, time_unit, false); }

std::string CsvHeading(const TableColumn& column, TimeUnit time_unit) {
  if (column.unit != Unit::kNs || time_unit == TimeUnit::kAuto) return column.name;
  const std::string_view name = column.name;
  return fmt::format("{}_{}", name.substr(0, name.size() - (name.ends_with("_ns") ? 3 : 0)),
                     ScaleOf(time_unit).name);
}

}  // namespace ranktap::collector
