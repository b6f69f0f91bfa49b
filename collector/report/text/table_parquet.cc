#include "collector/report/text/table_parquet.h"

#include <algorithm>
#include <variant>

#include "collector/report/text/table_text.h"

namespace ranktap::collector {
namespace {

ParquetType TypeOf(const Table& table, size_t column) {
  const Unit unit = table.columns[column].unit;
  const auto has = [&]<typename T>(T) {
    return std::ranges::any_of(table.rows, [column](const std::vector<Cell>& row) {
      return std::holds_alternative<T>(row[column]);
    });
  };
  if (unit == Unit::kText || has(std::string())) return ParquetType::kText;
  const bool is_real = unit == Unit::kPercent || unit == Unit::kGbPerSecond;
  return is_real || has(0.0) ? ParquetType::kDouble : ParquetType::kInt64;
}

void AddCell(const Cell& cell, Unit unit, ParquetValues* to) {
  const ParquetType type = to->field().type;
  if (std::holds_alternative<std::monostate>(cell)) return to->Null();
  if (type == ParquetType::kText) {
    const auto* const text = std::get_if<std::string>(&cell);
    return to->Text(text != nullptr ? *text : FormatCell(cell, unit));
  }
  const auto* const whole = std::get_if<int64_t>(&cell);
  if (type == ParquetType::kInt64) return to->Integer(*whole);
  to->Real(whole != nullptr ? static_cast<double>(*whole) : std::get<double>(cell));
}

ParquetSchema SchemaOf(const Table& table) {
  ParquetSchema schema;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    schema.fields.push_back({table.columns[i].name, TypeOf(table, i), true});
  }
  std::string notes;
  for (const std::string& note : table.notes) notes += (notes.empty() ? "" : "\n") + note;
  schema.notes = {{"ranktap.table", table.name}, {"ranktap.title", table.title}};
  if (!notes.empty()) schema.notes.emplace_back("ranktap.notes", notes);
  return schema;
}

}  // namespace

std::string DataSetTableName(std::string_view report) {
  std::string name = "report_" + std::string(report);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::optional<Failure> WriteParquet(const Table& table, DataSet* set) {
  Result<ParquetFile> file = set->CreateOfRun(DataSetTableName(table.name), SchemaOf(table));
  if (!file) return Failure{file.message()};
  for (size_t at = 0; at < table.rows.size(); at += kRowGroupRows) {
    const size_t end = std::min(at + kRowGroupRows, table.rows.size());
    for (size_t column = 0; column < table.columns.size(); ++column) {
      ParquetValues values(file->schema().fields[column]);
      for (size_t row = at; row < end; ++row) {
        AddCell(table.rows[row][column], table.columns[column].unit, &values);
      }
      file->Write(values);
    }
  }
  return file->Close();
}

}  // namespace ranktap::collector
