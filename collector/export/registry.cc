// The table of contents of collector/export. One line a format.
#include "collector/export/exporter.h"
#include "collector/export/exporters.h"
#include "collector/export/perfetto/perfetto_exporter.h"

namespace ranktap::collector {
namespace {

constexpr Exporter kExporters[] = {
    {"chrome", "Kineto's JSON: chrome://tracing, Perfetto, TensorBoard, HTA", ".pt.trace.json",
     false, &WriteChrome, kHtaNames | kArrows | kPieces},
    {"perfetto", "Perfetto's protobuf trace, all ranks in one file: ui.perfetto.dev", ".pftrace",
     true, &WritePerfetto, kGpuStages | kArrows | kPieces},
    {"csv", "One line an event, all ranks in one file: pandas, DuckDB, spreadsheets", ".csv", true,
     &WriteCsv},
    {"sqlite", "SQLite with the tables of nsys export, all ranks in one file", ".sqlite", true,
     &WriteSqlite},
    {"parquet", "a data set of Parquet files, several runs in one folder: DuckDB, Spark, pandas",
     "", true, &WriteParquet, kDataSet},
    {"folded", "folded stacks, weighted by GPU time: flamegraph.pl, speedscope", ".folded", true,
     &WriteFolded, kNoOption, true},
    {"speedscope", "flame graphs of host stacks and operators: speedscope.app", ".speedscope.json",
     true, &WriteSpeedscope, kNoOption, true},
    {"pprof", "the same stacks as profile.proto: go tool pprof, Pyroscope, Grafana", ".pb.gz", true,
     &WritePprof, kNoOption, true},
    {"memory-flow", "MegEngine's memory_flow.svg: a rectangle for each block of memory", ".svg",
     false, &WriteMemoryFlow},
    {"memory-timeline",
     "torch's export_memory_timeline: .html, .raw.json[.gz] rows, .json[.gz] curves",
     ".raw.json.gz", false, &WriteMemoryTimeline},
    {"memory-snapshot",
     "torch.cuda.memory._snapshot(): torch.cuda._memory_viz, pytorch.org/memory_viz", ".pickle",
     false, &WriteMemorySnapshot},
    {"et", "PyTorch's execution trace, a file a rank (run --tensors=full): et_replay, Chakra",
     ".json", false, &WriteExecutionTrace, kNoOption, false, false, "host.#.json"},
    {"replay", "a Python script that runs the operators again, with PyTorch alone", ".py", true,
     &WriteReplay, kReplayed},
    {"chakra", "Chakra's execution traces, a folder: ASTRA-sim, chakra_visualizer", "", true,
     &WriteChakra, 0, false, true},
    {"graph", "what waited for what: .dot, .graphml, or .svg where Graphviz is installed", ".dot",
     false, &WriteGraph},
    {"roofline", "attained FLOP/s by intensity below the device's ceilings: .svg, .html", ".svg",
     true, &WriteRoofline, kRooflines},
    {"ncu", "a shell script that measures the longest kernels with Nsight Compute", ".ncu.sh", true,
     &WriteNcu},
};

}  // namespace

std::span<const Exporter> AllExporters() { return kExporters; }

const Exporter* FindExporter(std::string_view name) {
  for (const Exporter& exporter : kExporters) {
    if (exporter.name == name) return &exporter;
  }
  return nullptr;
}

std::string FormatsThatHeed(uint32_t option) {
  std::string names;
  for (const Exporter& exporter : kExporters) {
    if ((exporter.heeds & option) == 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(exporter.name);
  }
  return names;
}

}  // namespace ranktap::collector
