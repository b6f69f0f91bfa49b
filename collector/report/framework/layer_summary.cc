#include <fmt/core.h>

#include "collector/facts/framework/layers.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct LayerRow {
  Layer layer;
  bool on_device = false;
  int64_t root_ns = 0;
  int64_t time_ns() const { return on_device ? layer.gpu_ns : layer.host_ns; }
};

// "64x3x224x224"
std::string Shape(const Dims& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

Cell OrNothing(int64_t bytes) { return bytes > 0 ? Cell(bytes) : Cell(); }

const ColumnsOf<LayerRow> kLayerColumns = {
    {"module", Unit::kText, "The layer's name in the model.",
     [](const LayerRow& row) { return row.layer.name; }},
    {"class", Unit::kText, "The layer's class.", [](const LayerRow& row) { return row.layer.type; },
     Shown::kDetail},
    {"calls", Unit::kCount, "The layer's calls in this forward.",
     [](const LayerRow& row) { return row.layer.calls; }, Shown::kDetail},
    {"input_shape", Unit::kText,
     "The first tensor that an operator in the layer's first call took, parameters left out.",
     [](const LayerRow& row) { return Shape(row.layer.input); }},
    {"output_shape", Unit::kText,
     "The tensor that the last operator in the layer's first call returned.",
     [](const LayerRow& row) { return Shape(row.layer.output); }},
    {"parameters", Unit::kCount, "The parameters of the layer and its children, each once.",
     [](const LayerRow& row) {
       return row.layer.parameters ? Cell(*row.layer.parameters) : Cell();
     }},
    {"output_bytes", Unit::kBytes, "The bytes that the layer's first call returned.",
     [](const LayerRow& row) { return OrNothing(row.layer.output_bytes); }},
    {"madd", Unit::kFlops, "torchstat's MAdd: the multiplications and additions of one sample.",
     [](const LayerRow& row) { return row.layer.torchstat.madd; }},
    {"flops", Unit::kFlops, "The operations as FlopCounterMode counts them; only products count.",
     [](const LayerRow& row) { return row.layer.flops; }},
    {"read_bytes", Unit::kBytes, "The bytes read at least: each input once, from shapes and types.",
     [](const LayerRow& row) { return OrNothing(row.layer.read); }},
    {"written_bytes", Unit::kBytes,
     "The bytes written at least: each output once, from shapes and types.",
     [](const LayerRow& row) { return OrNothing(row.layer.written); }},
    {"time_ns", Unit::kNs,
     "The device work that the layer's forward launched; without a device, the host's time.",
     [](const LayerRow& row) { return row.time_ns(); }},
    {"share_percent", Unit::kPercent, "The share of the forward of the layer's root.",
     [](const LayerRow& row) {
       if (row.root_ns <= 0) return Cell();
       return Cell(100 * static_cast<double>(row.time_ns()) / static_cast<double>(row.root_ns));
     }},
    {"torchstat_flops", Unit::kFlops,
     "torchstat's Flops: the batch's operations, a multiply-add as one.",
     [](const LayerRow& row) { return row.layer.torchstat.flops; }, Shown::kDetail},
    {"torchstat_read_bytes", Unit::kBytes,
     "torchstat's MemRead: it reads the parameters once a sample.",
     [](const LayerRow& row) { return row.layer.torchstat.read; }, Shown::kDetail},
    {"torchstat_written_bytes", Unit::kBytes, "torchstat's MemWrite.",
     [](const LayerRow& row) { return row.layer.torchstat.written; }, Shown::kDetail},
    {"torchstat_intensity", Unit::kCount,
     "torchstat's Flops divided by its MemR+W: the ratio that articles plot on a roofline.",
     [](const LayerRow& row) {
       const int64_t bytes = row.layer.torchstat.read + row.layer.torchstat.written;
       if (bytes <= 0) return Cell();
       return Cell(static_cast<double>(row.layer.torchstat.flops) / static_cast<double>(bytes));
     },
     Shown::kDetail},
};

// Layers come root after root.
std::vector<LayerRow> RowsOf(const Trace& trace) {
  std::vector<LayerRow> rows;
  const bool on_device = trace.kernels.size() > 0;
  int64_t root_ns = 0;
  for (Layer& layer : DescribeLayers(trace)) {
    LayerRow& row = rows.emplace_back();
    row.layer = std::move(layer);
    row.on_device = on_device;
    if (row.layer.name.find('.') == std::string::npos) root_ns = row.time_ns();
    row.root_ns = root_ns;
  }
  return rows;
}

std::vector<std::string> NotesOf(const Run& run, const std::vector<LayerRow>& rows) {
  if (rows.empty()) {
    return {"no forward of a module was recorded operator by operator; " +
            AdviceFor(run, {.ours = "ranktap run --level full does",
                            .profiler = "torch.profiler does with record_shapes=True, "
                                        "with_stack=True"})};
  }
  std::vector<std::string> notes = {
      "one forward, the first that was recorded, of the first rank that has one; bytes: each "
      "tensor "
      "once; madd: torchstat's multiplications and additions, of one sample"};
  notes.push_back(rows.front().on_device
                      ? "time_ns: of device work that the forwards launched"
                      : "time_ns: of the host, as nothing ran on a device; recording slows it");
  int64_t uncounted = 0;
  for (const LayerRow& row : rows) {
    if (row.layer.name.find('.') == std::string::npos) uncounted += row.layer.uncounted;
  }
  if (uncounted > 0) {
    notes.push_back(
        fmt::format("of {} the shapes or types are not recorded, so the bytes are not counted",
                    Counted(static_cast<size_t>(uncounted), "operator")));
  }
  return notes;
}

}  // namespace

Table TabulateLayers(const Run& run, const ReportOptions&) {
  std::vector<LayerRow> rows;
  for (const Trace& trace : run.traces) {
    rows = RowsOf(trace);
    if (!rows.empty()) break;  // ranks compute the same
  }
  Table table = TableOf("layers of one forward, one rank", kLayerColumns, rows);
  table.notes = NotesOf(run, rows);
  return table;
}

}  // namespace ranktap::collector
