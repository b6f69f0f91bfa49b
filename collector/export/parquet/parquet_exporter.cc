#include <algorithm>

#include "collector/export/exporters.h"
#include "collector/export/parquet/parquet_tables.h"
#include "collector/export/run_clock.h"
#include "collector/parquet/data_set.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kTables[] = {
    "kernels", "copies",      "graph_launches", "apis",        "ranges", "samples",
    "ops",     "allocations", "steps",          "collectives", "ranks"};

std::optional<Failure> WriteTable(const ParquetTable& table, ParquetFile* file) {
  const std::span<const uint32_t> rows = table.rows;
  for (size_t at = 0; at < rows.size(); at += kRowGroupRows) {
    const auto group = rows.subspan(at, std::min(kRowGroupRows, rows.size() - at));
    for (const ParquetColumn& column : table.columns) {
      ParquetValues values(column.field);
      column.fill(group, &values);
      file->Write(values);
    }
  }
  return file->Close();
}

std::optional<Failure> WriteTrace(const Trace& trace, const ParquetTarget& target, DataSet* set) {
  std::optional<Failure> failure;
  const AddParquetTable add = [&](const ParquetTable& table) {
    if (failure) return;
    ParquetSchema schema{
        .fields = {}, .sorted_by = {0}, .notes = {{"ranktap.table", std::string(table.name)}}};
    for (const ParquetColumn& column : table.columns) schema.fields.push_back(column.field);
    Result<ParquetFile> file = set->CreateOfRank(table.name, trace.info.rank, std::move(schema));
    failure = file ? WriteTable(table, &*file) : Failure{file.message()};
  };
  AddDeviceTables(trace, target, add);
  AddHostTables(trace, target, add);
  AddSampleTable(trace, target, add);
  AddFrameworkTables(trace, target, add);
  AddRunTables(trace, target, add);
  return failure;
}

}  // namespace

std::optional<Failure> WriteParquet(const Run& run, std::span<const Trace* const> traces,
                                    const ExportOptions& options, const std::string& path) {
  const std::string name = options.run_name.empty() ? RunNameOf(run.path) : options.run_name;
  Result<DataSet> set = DataSet::Open(path, name, options.replace_run, kTables);
  if (!set) return Failure{set.message()};
  for (const Trace* const trace : traces) {
    const int64_t realtime = RealtimeOffset(run, *trace);
    const ParquetTarget target{.run = &run,
                               .index = static_cast<uint32_t>(trace - run.traces.data()),
                               .shift_ns = realtime,
                               .options = options.Shifted(realtime)};
    if (auto failure = WriteTrace(*trace, target, &*set)) return failure;
  }
  return set->Publish();
}

}  // namespace ranktap::collector
