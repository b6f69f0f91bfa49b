// One cell and one heading of a table, as text, CSV and HTML show them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/report/table.h"

namespace ranktap::collector {

// The unit of a table's times. kAuto: people see each in the unit that suits it ("9.012 us"),
// programs ns. In any other unit each digit is shown down to the ns, so that the times of a column
// compare.
enum class TimeUnit : uint8_t { kAuto, kNs, kUs, kMs, kS };
// "ns", "us", "ms", "s" or "auto".
std::optional<TimeUnit> TimeUnitNamed(std::string_view name);

// For people: numbers with thousands apart, control characters replaced, "-" where nothing is.
std::string FormatCell(const Cell& cell, Unit unit, TimeUnit time_unit = TimeUnit::kAuto);

// As FormatCell; the number of a process or thread as other tools take it, "12345".
std::string FormatCellOf(const TableColumn& column, const Cell& cell,
                         TimeUnit time_unit = TimeUnit::kAuto);

// "total_ns" is "total", or "total (us)" where that is the unit. A share beside a time of its name
// is "total %"; no two headings of a table are alike.
std::vector<std::string> FormatHeadings(const Table& table, TimeUnit time_unit = TimeUnit::kAuto);

// A cell of times in CSV is a bare number, exact. The header names the unit: "total_us".
std::string CsvTime(int64_t ns, TimeUnit time_unit);
std::string CsvHeading(const TableColumn& column, TimeUnit time_unit);

}  // namespace ranktap::collector
