// A framework's records as Parquet tables: ops, allocations.
#include <algorithm>
#include <memory>
#include <numeric>

#include "collector/export/parquet/parquet_tables.h"
#include "collector/export/thread_number.h"
#include "collector/facts/framework/memory_blocks.h"
#include "collector/facts/framework/op_modules.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kPassNames[kPasses] = {"forward", "backward", "recompute"};

void AddOpTexts(const Trace& trace, ParquetTable* table) {
  const Operators& ops = trace.operators;
  const auto text = [&](std::string_view name, const OptionalColumn<uint32_t>& column) {
    table->Name(
        name, [&column](uint32_t row) { return column.At(row) == 0 ? kNone : column.At(row); },
        [&trace](uint32_t id) { return trace.dictionary.String(id); });
  };
  text("shapes", ops.shapes);
  text("types", ops.types);
  text("stack", ops.stack);
}

void AddPlaces(const Trace& trace, ParquetTable* table) {
  const auto places = std::make_shared<std::vector<OpPlace>>(
      trace.operators.size() > 0 ? PlaceOperators(trace) : std::vector<OpPlace>());
  table->Name(
      "module",
      [places](uint32_t row) {
        const uint32_t module = (*places)[row].module;
        return module == 0 ? kNone : module;
      },
      [&trace](uint32_t id) { return trace.dictionary.String(id); });
  table->Text("pass", [places](uint32_t row) {
    const OpPlace& place = (*places)[row];
    return place.in_no_pass ? std::string_view() : kPassNames[static_cast<size_t>(place.pass)];
  });
}

ParquetTable OpTable(const Trace& trace, const ParquetTarget& to) {
  const Operators& ops = trace.operators;
  ParquetTable table{.name = "ops", .rows = RowsByTime({{&ops.start, &ops.end}}, [&](uint32_t row) {
                                      return to.options.Keeps(ops.start[row], ops.end[row]);
                                    })};
  table.Integer("start_ns",
                [&ops, shift = to.shift_ns](uint32_t row) { return ops.start[row] + shift; });
  table.Integer("duration_ns", [&ops](uint32_t row) { return ops.end[row] - ops.start[row]; });
  table.Name(
      "name", [&ops](uint32_t row) { return ops.name[row]; },
      [&trace](uint32_t id) { return trace.dictionary.String(id); });
  table.Text("kind", [&ops](uint32_t row) -> std::string_view {
    const bool is_operator = ops.kind[row] == static_cast<uint8_t>(OperatorKind::kOperator);
    return is_operator ? "operator" : "annotation";
  });
  table.Integer(
      "thread", [&ops, &trace](uint32_t row) { return ThreadOf(trace, ops.writer[row]); }, kInt32);
  table.Integer("id", [](uint32_t row) { return row; });
  table.Optional("parent", [&ops](uint32_t row) -> std::optional<int64_t> {
    if (ops.parent[row] == kNone) return std::nullopt;
    return ops.parent[row];
  });
  table.Optional("sequence", [&ops](uint32_t row) -> std::optional<int64_t> {
    if (ops.sequence.At(row) == 0) return std::nullopt;
    return static_cast<int64_t>(ops.sequence.At(row) - 1);
  });
  table.Optional("flops", [&ops](uint32_t row) { return NotZero(ops.flops.At(row)); });
  AddPlaces(trace, &table);
  AddOpTexts(trace, &table);
  table.Optional("step",
                 [&ops, &trace](uint32_t row) { return StepNumberAt(trace, ops.start[row]); });
  return table;
}

// c10::DeviceType, of those that frameworks allocate on.
std::string_view DeviceTypeName(uint8_t type) {
  if (type == 0) return "cpu";
  return type == 1 ? "cuda" : "other";
}

// Rows of the framework's allocator, then those of CUDA's own functions.
class AllocationTable {
 public:
  AllocationTable(const Trace& trace, const ParquetTarget& to)
      : trace_(trace), to_(to), all_(trace.allocations) {}

  ParquetTable Make() const {
    ParquetTable table{.name = "allocations", .rows = Rows()};
    table.Integer("time_ns", [this](uint32_t row) { return TimeOf(row) + to_.shift_ns; });
    table.Text("source", [this](uint32_t row) -> std::string_view {
      return IsCuda(row) ? "cuda" : "framework";
    });
    table.Integer("bytes", [this](uint32_t row) { return BytesOf(row); });
    table.Optional("address", [this](uint32_t row) {
      return NotZero(IsCuda(row) ? Cuda(row).address : all_.address.At(row));
    });
    table.Text("device_type", [this](uint32_t row) {
      return IsCuda(row) ? "cuda" : DeviceTypeName(all_.device_type.At(row));
    });
    table.Optional(
        "device",
        [this](uint32_t row) -> std::optional<int64_t> {
          const uint32_t device = IsCuda(row) ? Cuda(row).device : MemoryDeviceOf(all_, row);
          if (device == kNone) return std::nullopt;
          return device;
        },
        kInt32);
    table.Optional("allocated_bytes", [this](uint32_t row) {
      return IsCuda(row) ? std::nullopt : NotZero(all_.allocated.At(row));
    });
    table.Optional("reserved_bytes", [this](uint32_t row) {
      return IsCuda(row) ? std::nullopt : NotZero(all_.reserved.At(row));
    });
    table.Text("category", [this](uint32_t row) -> std::string {
      const uint8_t category = IsCuda(row) ? uint8_t{0} : all_.category.At(row);
      return category == 0 ? "" : CategoryName(static_cast<MemoryCategory>(category - 1));
    });
    table.Text("owner", [this](uint32_t row) {
      const uint32_t owner = IsCuda(row) ? 0 : all_.owner.At(row);
      return owner == 0 ? std::string_view() : trace_.dictionary.String(owner);
    });
    table.Bool("relabelled",
               [this](uint32_t row) { return !IsCuda(row) && all_.relabelled.At(row) != 0; });
    table.Optional("step", [this](uint32_t row) { return StepNumberAt(trace_, TimeOf(row)); });
    return table;
  }

 private:
  bool IsCuda(uint32_t row) const { return row >= all_.size(); }
  const proto::MemoryEvent& Cuda(uint32_t row) const { return trace_.memory[row - all_.size()]; }
  int64_t TimeOf(uint32_t row) const {
    return IsCuda(row) ? static_cast<int64_t>(Cuda(row).time_ns) : all_.start[row];
  }
  int64_t BytesOf(uint32_t row) const {
    if (!IsCuda(row)) return all_.bytes[row];
    const auto bytes = static_cast<int64_t>(Cuda(row).bytes);
    constexpr uint32_t kAllocated = 1, kReleased = 2;  // CUpti_ActivityMemoryOperationType
    if (Cuda(row).operation == kAllocated) return bytes;
    return Cuda(row).operation == kReleased ? -bytes : 0;
  }
  std::vector<uint32_t> Rows() const {
    std::vector<uint32_t> rows;
    for (uint32_t row = 0; row < all_.size() + trace_.memory.size(); ++row) {
      if (to_.options.KeepsMoment(TimeOf(row))) rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [this](uint32_t a, uint32_t b) { return TimeOf(a) < TimeOf(b); });
    return rows;
  }

  const Trace& trace_;
  const ParquetTarget& to_;
  const Allocations& all_;
};

}  // namespace

void AddFrameworkTables(const Trace& trace, const ParquetTarget& target,
                        const AddParquetTable& add) {
  add(OpTable(trace, target));
  const AllocationTable allocations(trace, target);
  add(allocations.Make());
}

}  // namespace ranktap::collector
