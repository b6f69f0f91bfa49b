// How fast a trace of 10 M rows becomes a Parquet data set, beside compressing the trace's columns
// as they lie in memory; and how large it is, beside the SQLite export of the same trace.
#include <zstd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "collector/export/exporter.h"
#include "collector/trace/large_blocks.h"
#include "collector/trace/load/trace_loader.h"
#include "collector/trace/table_columns.h"
#include "tests/bench/figure.h"
#include "tests/bench/training_trace.h"

namespace ranktap::bench {
namespace {

using namespace ranktap::collector;
namespace fs = std::filesystem;

constexpr uint64_t kEvents = 10'500'000;  // pushes and pops make one row

void Export(const Run& run, const char* format, const std::string& path) {
  const std::vector<const Trace*> traces = {&run.traces[0]};
  if (const auto failure = FindExporter(format)->write(run, traces, {}, path)) {
    std::fprintf(stderr, "parquet_bench: %s\n", failure->message.c_str());
    std::abort();
  }
}

double BytesIn(const std::string& folder) {
  double bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += static_cast<double>(entry.file_size());
  }
  return bytes;
}

double FloorSeconds(Trace* trace) {
  std::vector<std::string> columns;
  ForEachTable(*trace, [&](auto& table) {
    ForEachColumnOf(table, [&](auto& column) {
      std::string& bytes = columns.emplace_back();
      for (const auto value : column) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
      }
    });
  });
  std::vector<char> out;
  return LeastCpuSeconds(1, [&] {
    for (const std::string& bytes : columns) {
      out.resize(ZSTD_compressBound(bytes.size()));
      if (ZSTD_isError(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1))) {
        std::abort();
      }
    }
  });
}

void Measure(Run* run, const std::string& directory) {
  Trace& trace = run->traces[0];
  const auto rows =
      static_cast<double>(trace.kernels.size() + trace.copies.size() + trace.api_calls.size() +
                          trace.event_calls.size() + trace.ranges.size());
  const std::string set = directory + "/parquet", sqlite = directory + "/bench.sqlite";
  const double seconds = LeastCpuSeconds(2, [&] {
    fs::remove_all(set);
    trace.memo.Reset(), run->memo.Reset();  // steps are found anew
    Export(*run, "parquet", set);
  });
  const double bytes = BytesIn(set);
  char note[64];
  std::snprintf(note, sizeof(note), "%.2f M rows, %.1f B each", rows / 1e6, bytes / rows);
  Print({.name = "export of 10 M rows to parquet, one core",
         .value = seconds / rows * 1e7,
         .unit = "s",
         .floor_name = "compressing the columns in memory",
         .floor = FloorSeconds(&trace) / rows * 1e7,
         .target = 10,
         .note = note});
  fs::remove_all(set);
  Export(*run, "sqlite", sqlite);
  Print({.name = "the same: size, of the SQLite export's",
         .value = 100 * bytes / static_cast<double>(fs::file_size(sqlite)),
         .unit = "%",
         .floor_name = "",
         .target = 35,
         .note = note});
  fs::remove(sqlite);
}

}  // namespace
}  // namespace ranktap::bench

int main(int argc, char** argv) {
  using namespace ranktap::bench;
  ranktap::collector::KeepLargeBlocks();  // as export does
  if (argc != 2) {
    std::fprintf(stderr, "usage: parquet_bench DIRECTORY\n");
    return 2;
  }
  const std::string path = std::string(argv[1]) + "/rank-00000.trace";
  { const TrainingTrace written(path, kEvents); }
  ranktap::collector::Run run;
  run.path = argv[1];
  auto trace = ranktap::collector::LoadTrace(path);
  if (!trace) {
    std::fprintf(stderr, "parquet_bench: %s\n", trace.message().c_str());
    return 1;
  }
  run.traces.push_back(std::move(*trace));
  Measure(&run, argv[1]);
  std::filesystem::remove(path);
  return 0;
}
