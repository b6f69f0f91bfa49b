// Work of devices as Parquet tables: kernels, copies (with memsets), graph_launches.
#include <memory>

#include "collector/export/cupti_names.h"
#include "collector/export/parquet/parquet_tables.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/steps.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// A row of one or two tables of work laid end to end.
struct Source {
  const DeviceWork* first;
  const DeviceWork* second = nullptr;

  bool in_first(uint32_t row) const { return row < first->size(); }
  const DeviceWork& Of(uint32_t row) const { return in_first(row) ? *first : *second; }
  uint32_t RowOf(uint32_t row) const {
    return in_first(row) ? row : row - static_cast<uint32_t>(first->size());
  }
  template <typename Column>
  auto At(Column DeviceWork::*column, uint32_t row) const {
    return (Of(row).*column)[RowOf(row)];
  }
  template <typename T>
  T At(OptionalColumn<T> DeviceWork::*column, uint32_t row) const {
    return (Of(row).*column).At(RowOf(row));
  }
  int64_t start(uint32_t row) const { return At(&DeviceWork::start, row); }
  int64_t end(uint32_t row) const { return At(&DeviceWork::end, row); }
};

class DeviceTables {
 public:
  DeviceTables(const Trace& trace, const ParquetTarget& target)
      : trace_(trace), to_(target), steps_(DetectSteps(trace)) {
    if (trace.operators.size() > 0) places_ = PlaceOperators(trace);
  }

  void Add(const AddParquetTable& add) const {
    add(KernelTable());
    add(CopyTable());
    const Source graphs{&trace_.graph_launches};
    ParquetTable table = Work("graph_launches", graphs);
    AddPlace(graphs, &table);
    add(table);
  }

 private:
  // The columns of all work, in two parts: names stand between them.
  ParquetTable Work(std::string_view name, const Source& of) const {
    std::vector<MergedTable> tables = {{&of.first->start, &of.first->end}};
    if (of.second != nullptr) tables.push_back({&of.second->start, &of.second->end});
    const ExportOptions& options = to_.options;
    ParquetTable table{.name = name, .rows = RowsByTime(tables, [&](uint32_t row) {
                                       return options.Keeps(of.start(row), of.end(row));
                                     })};
    table.Optional("start_ns", [of, shift = to_.shift_ns](uint32_t row) {
      const int64_t start = of.start(row);
      return start == kUntimed ? std::nullopt : std::optional(start + shift);
    });
    table.Optional("duration_ns", [of](uint32_t row) {
      const int64_t start = of.start(row);
      return start == kUntimed ? std::nullopt : std::optional(of.end(row) - start);
    });
    return table;
  }
  void AddPlace(const Source& of, ParquetTable* table) const {
    const auto lane = [this, of](uint32_t row) {
      return trace_.lanes[of.At(&DeviceWork::lane, row)];
    };
    table->Integer(
        "device", [lane](uint32_t row) { return lane(row).device; }, kInt32);
    table->Integer(
        "context", [lane](uint32_t row) { return lane(row).context; }, kInt32);
    table->Integer("stream", [lane](uint32_t row) { return StreamNumber(lane(row).stream); });
    table->Integer("correlation",
                   [of](uint32_t row) { return of.At(&DeviceWork::correlation, row); });
    table->Optional("launch_ns", [this, of](uint32_t row) -> std::optional<int64_t> {
      const uint32_t call = of.At(&DeviceWork::launch, row);
      if (call == kNone) return std::nullopt;
      return trace_.api_calls.start[call] + to_.shift_ns;
    });
    table->Optional("step", [this, of](uint32_t row) { return StepOf(of, row); });
    table->Name(
        "op",
        [this, of](uint32_t row) {
          const uint32_t op = of.At(&DeviceWork::op, row);
          return op == 0 ? kNone : trace_.operators.name[op - 1];
        },
        [this](uint32_t id) { return trace_.dictionary.String(id); });
    table->Name(
        "module",
        [this, of](uint32_t row) {
          const uint32_t op = of.At(&DeviceWork::op, row);
          return op == 0 || places_[op - 1].module == 0 ? kNone : places_[op - 1].module;
        },
        [this](uint32_t id) { return trace_.dictionary.String(id); });
    table->Optional("graph",
                    [of](uint32_t row) { return NotZero(of.At(&DeviceWork::graph, row)); });
    table->Optional("graph_node",
                    [of](uint32_t row) { return NotZero(of.At(&DeviceWork::graph_node, row)); });
  }

  // As reports have it: that which launched it.
  std::optional<int64_t> StepOf(const Source& of, uint32_t row) const {
    const uint32_t call = of.At(&DeviceWork::launch, row);
    const int64_t time =
        call == kNone || steps_.on_device ? of.start(row) : trace_.api_calls.start[call];
    const int64_t index = time == kUntimed ? -1 : StepIndexAt(steps_, time);
    if (index < 0) return std::nullopt;
    return steps_.list[static_cast<size_t>(index)].number;
  }

  ParquetTable KernelTable() const {
    const Kernels& kernels = trace_.kernels;
    const Source source{&kernels};
    ParquetTable table = Work("kernels", source);
    table.Name(
        "name", [&kernels](uint32_t row) { return kernels.name[row]; },
        [this](uint32_t id) { return ReadableKernelName(trace_.dictionary.String(id)); });
    // By row; untimed ones are not on the timeline.
    auto kinds = std::make_shared<std::vector<uint8_t>>(kernels.size(), uint8_t{UINT8_MAX});
    for (const DeviceSpan& span : DeviceTimeline(trace_)) {
      if (span.table == DeviceSpan::Table::kKernel) {
        (*kinds)[span.row] = static_cast<uint8_t>(span.kind);
      }
    }
    table.Name(
        "kind",
        [kinds](uint32_t row) { return (*kinds)[row] == UINT8_MAX ? kNone : (*kinds)[row]; },
        [](uint32_t kind) { return NameOf(static_cast<WorkKind>(kind)); });
    AddPlace(source, &table);
    using Launch = proto::LaunchShape;
    const auto shape = [&](std::string_view column, auto of) {
      table.Optional(
          column,
          [this, &kernels, of](uint32_t row) -> std::optional<int64_t> {
            const Launch* const launch = trace_.dictionary.Shape(kernels.shape[row]);
            if (launch == nullptr) return std::nullopt;
            return of(*launch);
          },
          kInt32);
    };
    shape("grid_x", [](const Launch& l) { return l.grid[0]; });
    shape("grid_y", [](const Launch& l) { return l.grid[1]; });
    shape("grid_z", [](const Launch& l) { return l.grid[2]; });
    shape("block_x", [](const Launch& l) { return l.block[0]; });
    shape("block_y", [](const Launch& l) { return l.block[1]; });
    shape("block_z", [](const Launch& l) { return l.block[2]; });
    shape("registers_per_thread", [](const Launch& l) { return l.registers_per_thread; });
    shape("static_shared_bytes", [](const Launch& l) { return l.static_shared_bytes; });
    shape("dynamic_shared_bytes", [](const Launch& l) { return l.dynamic_shared_bytes; });
    return table;
  }

  ParquetTable CopyTable() const {
    const Copies& copies = trace_.copies;
    const Memsets& memsets = trace_.memsets;
    const Source source{&copies, &memsets};
    ParquetTable table = Work("copies", source);
    table.Text("name", [this, source](uint32_t row) {
      DeviceSpan span;
      span.row = source.RowOf(row);
      span.table = source.in_first(row) ? DeviceSpan::Table::kCopy : DeviceSpan::Table::kMemset;
      return NameOf(trace_, span);
    });
    table.Text("kind", [&copies, source](uint32_t row) {
      return source.in_first(row) ? CopyKindName(copies.copy_kind[row]) : "Memset";
    });
    table.Optional("bytes", [&copies, &memsets, source](uint32_t row) -> std::optional<int64_t> {
      const uint32_t at = source.RowOf(row);
      const bool unknown =
          (source.in_first(row) ? copies.bytes_unknown : memsets.bytes_unknown).At(at) != 0;
      if (unknown) return std::nullopt;
      return static_cast<int64_t>((source.in_first(row) ? copies.bytes : memsets.bytes)[at]);
    });
    AddPlace(source, &table);
    return table;
  }

  const Trace& trace_;
  const ParquetTarget& to_;
  const StepList& steps_;
  std::vector<OpPlace> places_;
};

}  // namespace

std::optional<int64_t> StepNumberAt(const Trace& trace, int64_t time) {
  const StepList& steps = DetectSteps(trace);
  const int64_t index = StepIndexAt(steps, time);
  if (index < 0) return std::nullopt;
  return steps.list[static_cast<size_t>(index)].number;
}

void AddDeviceTables(const Trace& trace, const ParquetTarget& target, const AddParquetTable& add) {
  DeviceTables(trace, target).Add(add);
}

}  // namespace ranktap::collector
