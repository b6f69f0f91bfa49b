// Tables of a trace, as columns of a Parquet file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/export/export_options.h"
#include "collector/parquet/parquet_values.h"
#include "collector/trace/run.h"
#include "collector/trace/table_merge.h"

namespace ranktap::collector {

inline constexpr uint32_t kMostCodes = 1u << 24;

struct ParquetColumn {
  ParquetField field;
  // A value for each of these rows of the table's source.
  std::function<void(std::span<const uint32_t> rows, ParquetValues* to)> fill;
};

// Its columns refer to the trace, which must outlive it. The first one is what rows are sorted by.
struct ParquetTable {
  std::string_view name;
  std::vector<uint32_t> rows;  // of its source, by time
  std::vector<ParquetColumn> columns = {};

  // of(row) -> a number.
  template <typename Of>
  void Integer(std::string_view column, Of of, ParquetType type = ParquetType::kInt64) {
    columns.push_back({{std::string(column), type, false},
                       [of](std::span<const uint32_t> wanted, ParquetValues* to) {
                         for (const uint32_t row : wanted) {
                           to->Integer(static_cast<int64_t>(of(row)));
                         }
                       }});
  }
  // of(row) -> std::optional of a number.
  template <typename Of>
  void Optional(std::string_view column, Of of, ParquetType type = ParquetType::kInt64) {
    columns.push_back({{std::string(column), type, true},
                       [of](std::span<const uint32_t> wanted, ParquetValues* to) {
                         for (const uint32_t row : wanted) {
                           const auto value = of(row);
                           value ? to->Integer(static_cast<int64_t>(*value)) : to->Null();
                         }
                       }});
  }
  template <typename Of>
  void Bool(std::string_view column, Of of) {
    columns.push_back({{std::string(column), ParquetType::kBool, false},
                       [of](std::span<const uint32_t> wanted, ParquetValues* to) {
                         for (const uint32_t row : wanted) to->Bool(of(row));
                       }});
  }
  // of(row) -> a text; an empty one is null.
  template <typename Of>
  void Text(std::string_view column, Of of) {
    columns.push_back({{std::string(column), ParquetType::kText, true},
                       [of](std::span<const uint32_t> wanted, ParquetValues* to) {
                         for (const uint32_t row : wanted) {
                           const auto& text = of(row);
                           std::string_view(text).empty() ? to->Null() : to->Text(text);
                         }
                       }});
  }
  // id_of(row) -> the small number of a text, kNone: null; text_of(id) -> the text. A text is
  // worked out once in a row group.
  template <typename IdOf, typename TextOf>
  void Name(std::string_view column, IdOf id_of, TextOf text_of) {
    columns.push_back({{std::string(column), ParquetType::kText, true},
                       [id_of, text_of](std::span<const uint32_t> wanted, ParquetValues* to) {
                         std::vector<uint32_t> codes;  // 1 + code; 0: not asked for yet
                         for (const uint32_t row : wanted) {
                           const uint32_t id = id_of(row);
                           if (id == kNone) {
                             to->Null();
                             continue;
                           }
                           if (id > kMostCodes) {  // of a file that is not honest
                             to->Text(text_of(id));
                             continue;
                           }
                           if (id >= codes.size()) codes.resize(size_t{id} + 1);
                           if (codes[id] == 0) codes[id] = 1 + to->CodeOf(text_of(id));
                           to->Code(codes[id] - 1);
                         }
                       }});
  }
};

struct ParquetTarget {
  const Run* run;
  uint32_t index;         // of the trace in the run
  int64_t shift_ns;       // to be added to the trace's times: CLOCK_REALTIME
  ExportOptions options;  // the window on the trace's own clock
};

// The number of the step that each moment or piece of work belongs to, where there are steps.
std::optional<int64_t> StepNumberAt(const Trace& trace, int64_t time);

inline constexpr ParquetType kInt32 = ParquetType::kInt32;

template <typename Number>
std::optional<int64_t> NotZero(Number number) {
  return number == 0 ? std::nullopt : std::optional<int64_t>(static_cast<int64_t>(number));
}

// Rows of tables laid end to end, by time; keeps(row) says which. A row without a time comes last.
template <typename Keeps>
std::vector<uint32_t> RowsByTime(const std::vector<MergedTable>& tables, const Keeps& keeps) {
  std::vector<uint32_t> first, rows, untimed;
  uint32_t count = 0;
  for (const MergedTable& table : tables) {
    first.push_back(count);
    count += static_cast<uint32_t>(table.start->size());
  }
  rows.reserve(count);
  MergeTables(tables, [&](size_t table, size_t row) {
    const uint32_t id = first[table] + static_cast<uint32_t>(row);
    if (!keeps(id)) return;
    ((*tables[table].start)[row] == kUntimed ? untimed : rows).push_back(id);
  });
  rows.insert(rows.end(), untimed.begin(), untimed.end());
  return rows;
}

// Each gives its tables to `add`, one after the other.
using AddParquetTable = std::function<void(const ParquetTable& table)>;
void AddDeviceTables(const Trace& trace, const ParquetTarget& target, const AddParquetTable& add);
void AddHostTables(const Trace& trace, const ParquetTarget& target, const AddParquetTable& add);
void AddSampleTable(const Trace& trace, const ParquetTarget& target, const AddParquetTable& add);
void AddFrameworkTables(const Trace& trace, const ParquetTarget& target,
                        const AddParquetTable& add);
void AddRunTables(const Trace& trace, const ParquetTarget& target, const AddParquetTable& add);

}  // namespace ranktap::collector
