#include "collector/report/table_filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "collector/report/nearest_name.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

std::optional<double> NumberOf(const Cell& cell) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  return std::nullopt;
}

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// By its name, or as text shows it: "gpu busy" for gpu_busy_percent.
Result<size_t> ColumnNamed(std::string_view name, const Table& table) {
  std::string spelled(name);
  std::replace(spelled.begin(), spelled.end(), ' ', '_');
  if (spelled.ends_with("_%")) spelled.replace(spelled.size() - 1, 1, "percent");
  std::string known, shown;
  std::optional<size_t> found, share;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const std::string& column = table.columns[c].name;
    if (column == name || std::ranges::count(table.columns[c].also, name) > 0) return c;
    known += (known.empty() ? "" : ", ") + column;
    if (column == spelled + "_percent") share = c;
    for (const char* const unit : {"", "_ns", "_bytes"}) {
      if (column != spelled + unit) continue;
      shown += (shown.empty() ? "" : " or ") + column;
      found = c;
    }
  }
  if (!found && share) return *share;  // beside a time of this name text shows it as "NAME %"
  if (found && shown == table.columns[*found].name) return *found;
  if (found) return Failure{fmt::format("'{}' may be {}", name, shown)};
  std::vector<std::string_view> names;
  for (const TableColumn& of : table.columns) {
    const std::string_view column = of.name;
    names.push_back(column);
    // As text shows it, which is a name of it too.
    for (const std::string_view unit : {"_ns", "_bytes", "_percent"}) {
      if (column.ends_with(unit)) names.push_back(column.substr(0, column.size() - unit.size()));
    }
  }
  return Failure{fmt::format("no column '{}' in {}{}; it has {}", name, table.name,
                             DidYouMean(name, names), known)};
}

// "10", in a column of times also "10 ms", of sizes "2MiB".
std::optional<double> NumberIn(std::string_view text, Unit unit) {
  struct Size {
    Unit of;
    std::string_view name;
    double factor;
  };
  static constexpr Size kSizes[] = {
      {Unit::kNs, "ns", 1},           {Unit::kNs, "us", 1e3},         {Unit::kNs, "ms", 1e6},
      {Unit::kNs, "s", 1e9},          {Unit::kBytes, "B", 1},         {Unit::kBytes, "KiB", 1024},
      {Unit::kBytes, "MiB", 1 << 20}, {Unit::kBytes, "GiB", 1 << 30}, {Unit::kPercent, "%", 1},
      {Unit::kFlops, "M", 1e6},       {Unit::kFlops, "G", 1e9},       {Unit::kFlops, "T", 1e12},
      {Unit::kFlops, "P", 1e15}};
  const Unit of = unit == Unit::kFlopsPerSecond ? Unit::kFlops : unit;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest = Trimmed(text.substr(static_cast<size_t>(end - text.data())));
  if (rest.empty()) return number;
  for (const Size& size : kSizes) {
    if (size.of == of && size.name == rest) return number * size.factor;
  }
  return std::nullopt;
}

constexpr std::string_view kOperators[] = {"!=", "<=", ">=", "!~", "=", "<", ">", "~"};

template <typename T>
bool Compare(const T& a, std::string_view op, const T& b) {
  if (op == "=") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  return a >= b;
}

bool Holds(const Cell& cell, std::string_view op, std::string_view value,
           std::optional<double> number) {
  if (std::holds_alternative<std::monostate>(cell)) return op.starts_with('!');
  if (const auto* text = std::get_if<std::string>(&cell)) {
    if (op.ends_with('~')) return (text->find(value) != text->npos) == (op == "~");
    return Compare(std::string_view(*text), op, value);
  }
  return number && !op.ends_with('~') && Compare(*NumberOf(cell), op, *number);
}

void ShowAlways(TableColumn* column) {
  if (column->shown != Shown::kProse) column->shown = Shown::kWanted;
}

}  // namespace

Result<bool> KeepWhere(const std::string& condition, Table* table) {
  const size_t at = condition.find_first_of("!=<>~");
  if (at == condition.npos) {
    return Failure{
        fmt::format("'{}' is not a condition; write COLUMN OP VALUE, as in calls>=10", condition)};
  }
  const std::string_view rest = std::string_view(condition).substr(at);
  const auto* const op =
      std::find_if(std::begin(kOperators), std::end(kOperators),
                   [rest](std::string_view known) { return rest.starts_with(known); });
  if (op == std::end(kOperators)) {
    return Failure{fmt::format("'{}': no such comparison", condition)};
  }
  const Result<size_t> column = ColumnNamed(Trimmed(condition.substr(0, at)), *table);
  if (!column) return Failure{column.message()};
  const std::string value(Trimmed(rest.substr(op->size())));
  const Unit unit = table->columns[*column].unit;
  const std::optional<double> number = NumberIn(value, unit);
  if (!number && unit != Unit::kText) {
    return Failure{fmt::format("'{}': {} is a number, and '{}' is not a number{}", condition,
                               table->columns[*column].name, value,
                               unit == Unit::kNs      ? "; write ns, or 1.5us, 10ms, 2s"
                               : unit == Unit::kBytes ? "; write bytes, or 512KiB, 25MiB, 1GiB"
                                                      : "")};
  }
  std::erase_if(table->rows, [&](const std::vector<Cell>& row) {
    return !Holds(row[*column], *op, value, number);
  });
  return true;
}

Result<bool> SortBy(const std::string& name, Table* table) {
  const bool reversed = name.starts_with('-');
  const Result<size_t> column = ColumnNamed(reversed ? name.substr(1) : name, *table);
  if (!column) return Failure{column.message()};
  const size_t c = *column;
  ShowAlways(&table->columns[c]);
  SortRows(&table->rows, [c, reversed](const std::vector<Cell>& a, const std::vector<Cell>& b) {
    const bool a_empty = std::holds_alternative<std::monostate>(a[c]);
    const bool b_empty = std::holds_alternative<std::monostate>(b[c]);
    if (a_empty || b_empty) return !a_empty && b_empty;
    const auto *x = std::get_if<std::string>(&a[c]), *y = std::get_if<std::string>(&b[c]);
    if (x != nullptr && y != nullptr) return reversed ? *y < *x : *x < *y;
    const double m = NumberOf(a[c]).value_or(0), n = NumberOf(b[c]).value_or(0);
    return reversed ? m < n : m > n;
  });
  return true;
}

Result<bool> KeepColumns(const std::vector<std::string>& names, Table* table) {
  std::vector<size_t> kept;
  for (const std::string& name : names) {
    const Result<size_t> column = ColumnNamed(Trimmed(name), *table);
    if (!column) return Failure{column.message()};
    if (std::ranges::count(kept, *column) == 0) kept.push_back(*column);
  }
  std::vector<TableColumn> columns;
  for (const size_t c : kept) {
    columns.push_back(table->columns[c]);
    ShowAlways(&columns.back());
  }
  table->columns = std::move(columns);
  for (std::vector<Cell>& row : table->rows) {
    std::vector<Cell> cells;
    for (const size_t c : kept) cells.push_back(std::move(row[c]));
    row = std::move(cells);
  }
  return true;
}

}  // namespace ranktap::collector
