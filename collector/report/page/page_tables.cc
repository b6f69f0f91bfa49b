#include "collector/report/page/page_tables.h"

#include <algorithm>
#include <string_view>

#include "collector/file/json.h"
#include "collector/report/report.h"
#include "collector/report/run_in_commands.h"
#include "collector/trace/at_once.h"
#include "collector/trace/work_progress.h"

namespace ranktap::collector {
namespace {

// More rows than a person reads; those of a rank and step are the heat map.
constexpr size_t kMostRows = 2'000, kMostCells = 200'000;

struct Wanted {
  std::string_view name;
  size_t rows = kMostRows;
  std::vector<std::string_view> columns = {};  // empty: all
};

const std::vector<Wanted>& WantedTables() {
  static const std::vector<Wanted> kWanted = {
      {"verdict"},
      {"insights"},
      {"key-figures"},
      {"waterfall"},
      {"waterfall-by-rank", kMostCells},
      // The heat map's: 16 columns of 64,000 steps would be 7 MB.
      {"steps",
       kMostCells,
       {"rank", "step", "start_ns", "total_ns", "device_busy_percent", "kernels", "warm_up"}},
      {"stragglers"},
      {"rank-pairs", 20'000},
      {"comm"},
      {"groups"},
      {"ranks"},
      {"throughput"},
      {"kernels"},
      {"ops"},
      {"modules"},
      {"memory"},
      {"memory-peak"},
      {"memory-modules"},
      {"memory-over-time", 20'000},
      {"roofline"},
      {"stacks"},
      {"devices"},
      {"align"},
      {"losses"},
      {"gaps", 200},
      {"cost"},
      {"windows", 200},
  };
  return kWanted;
}

Json ToJson(const Cell& cell) {
  if (const auto* const text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* const count = std::get_if<int64_t>(&cell)) return *count;
  if (const auto* const real = std::get_if<double>(&cell)) return *real;
  return nullptr;
}

Json WantedColumns(const Table& table, const Wanted& wanted) {
  Json columns = Json::array();
  const size_t rows = std::min(table.rows.size(), wanted.rows);
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const TableColumn& column = table.columns[c];
    if (!wanted.columns.empty() && std::find(wanted.columns.begin(), wanted.columns.end(),
                                             column.name) == wanted.columns.end()) {
      continue;
    }
    Json values = Json::array();
    bool is_empty = true;
    for (size_t r = 0; r < rows; ++r) {
      is_empty &= std::holds_alternative<std::monostate>(table.rows[r][c]);
      values.push_back(ToJson(table.rows[r][c]));
    }
    // A column without a value in it is named and takes no room.
    columns.push_back({{"name", column.name}, {"unit", UnitName(column.unit)}});
    if (!is_empty) columns.back()["values"] = std::move(values);
  }
  return columns;
}

Json PageTable(const Table& table, const Wanted& wanted) {
  return {{"title", table.title},
          {"columns", WantedColumns(table, wanted)},
          {"shown", std::min(table.rows.size(), wanted.rows)},
          {"rows", table.rows.size()},
          {"notes", table.notes}};
}

}  // namespace

Json PageTable(const Table& table) { return PageTable(table, {table.name}); }

Json PageTables(const Run& run, const ReportOptions& options,
                const std::vector<std::string>& inputs) {
  Json tables = Json::object();
  Progress().Begin("making the page", WantedTables().size() + 4);  // and the pictures
  const auto make = [&](size_t i) {
    const Report* const report = FindReport(WantedTables()[i].name);
    if (report == nullptr) return Json();
    Table table = (*report)(run, options);
    NameTheRun(inputs, &table);
    return PageTable(table, WantedTables()[i]);
  };
  MakeAtOnce(WantedTables().size(), make, [&](size_t i, Json table) {
    ++Progress().done;
    if (!table.is_null()) tables[std::string(WantedTables()[i].name)] = std::move(table);
    return true;
  });
  return tables;
}

}  // namespace ranktap::collector
