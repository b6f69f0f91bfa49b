// The devices' tables of an SQLite export.
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/export/json_text.h"
#include "collector/export/sqlite/sqlite_trace.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr uint32_t kNoStream = 0xffffffff, kNoEvent = 0xffffffff;

struct KernelNames {
  int64_t readable = 0, brief = 0, mangled = 0;
};

// "void at::native::reduce<4>(int)" -> "reduce", as nsys' shortName.
std::string BaseName(const std::string& readable) {
  std::string name = ShortKernelName(readable);
  name = name.substr(0, name.find('<'));
  const size_t space = name.rfind(' ');
  if (space != std::string::npos) name = name.substr(space + 1);
  const size_t colons = name.rfind("::");
  if (colons != std::string::npos) name = name.substr(colons + 2);
  return name.empty() ? readable : name;
}

class DeviceTables {
 public:
  DeviceTables(const Trace& trace, const SqlTraceTarget& target) : trace_(trace), to_(target) {}

  void Append() {
    AppendKernels();
    AppendCopies();
    AppendMemsets();
    AppendGraphLaunches();
    AppendSyncs();
    AppendMemory();
  }

 private:
  template <typename Value>
  static auto Number(Value value) {
    return [value](size_t row, SqlValue to) { to.Set(static_cast<int64_t>(value(row))); };
  }
  // Only where it is not 0.
  template <typename Value>
  static auto NumberOrNull(Value value) {
    return [value](size_t row, SqlValue to) {
      const auto number = static_cast<int64_t>(value(row));
      if (number != 0) to.Set(number);
    };
  }

  // NULL where the file that was imported does not say it.
  template <typename Transfers>
  static SqlColumn BytesColumn(const Transfers& of) {
    return {of.bytes_unknown.empty() ? "bytes INTEGER NOT NULL" : "bytes INTEGER",
            [&of](size_t row, SqlValue to) {
              if (of.bytes_unknown.At(row) == 0) to.Set(static_cast<int64_t>(of.bytes[row]));
            }};
  }

  // A table of work on streams with the columns they all have.
  SqlTable Work(const DeviceWork& work, const char* name) const {
    const auto shift = to_.shift_ns;
    const std::vector<Lane>& lanes = trace_.lanes;
    const ExportOptions options = to_.options;
    SqlTable table{.name = name, .columns = {}, .rows = work.size()};
    table.keeps = [&work, options](size_t row) {
      return work.start[row] != kUntimed && options.Keeps(work.start[row], work.end[row]);
    };
    const auto add = [&table](std::string_view declaration, auto value) {
      table.columns.push_back({declaration, Number(value)});
    };
    add("start INTEGER NOT NULL", [&work, shift](size_t i) { return work.start[i] + shift; });
    add("end INTEGER NOT NULL", [&work, shift](size_t i) { return work.end[i] + shift; });
    add("deviceId INTEGER NOT NULL",
        [&work, &lanes](size_t i) { return lanes[work.lane[i]].device; });
    add("contextId INTEGER NOT NULL",
        [&work, &lanes](size_t i) { return lanes[work.lane[i]].context; });
    add("streamId INTEGER NOT NULL",
        [&work, &lanes](size_t i) { return StreamNumber(lanes[work.lane[i]].stream); });
    add("correlationId INTEGER", [&work](size_t i) { return work.correlation[i]; });
    add("globalPid INTEGER", [pid = to_.global_pid](size_t) { return pid; });
    table.columns.push_back(
        {"graphId INTEGER", NumberOrNull([&work](size_t i) { return work.graph.At(i); })});
    table.columns.push_back(
        {"graphNodeId INTEGER", NumberOrNull([&work](size_t i) { return work.graph_node.At(i); })});
    return table;
  }

  void AppendKernels() {
    const Kernels& kernels = trace_.kernels;
    SqlTable table = Work(kernels, "CUPTI_ACTIVITY_KIND_KERNEL");
    const auto add = [&table](std::string_view declaration, auto value) {
      table.columns.push_back({declaration, Number(value)});
    };
    add("demangledName INTEGER NOT NULL", [&](size_t i) { return Names(i).readable; });
    add("shortName INTEGER NOT NULL", [&](size_t i) { return Names(i).brief; });
    add("mangledName INTEGER", [&](size_t i) { return Names(i).mangled; });
    const auto shape = [&](std::string_view declaration, auto of) {
      table.columns.push_back({declaration, [this, of](size_t row, SqlValue to) {
                                 if (const auto* found = Shape(row)) {
                                   to.Set(static_cast<int64_t>(of(*found)));
                                 }
                               }});
    };
    using Launch = proto::LaunchShape;
    shape("registersPerThread INTEGER", [](const Launch& l) { return l.registers_per_thread; });
    shape("gridX INTEGER", [](const Launch& l) { return l.grid[0]; });
    shape("gridY INTEGER", [](const Launch& l) { return l.grid[1]; });
    shape("gridZ INTEGER", [](const Launch& l) { return l.grid[2]; });
    shape("blockX INTEGER", [](const Launch& l) { return l.block[0]; });
    shape("blockY INTEGER", [](const Launch& l) { return l.block[1]; });
    shape("blockZ INTEGER", [](const Launch& l) { return l.block[2]; });
    shape("staticSharedMemory INTEGER", [](const Launch& l) { return l.static_shared_bytes; });
    shape("dynamicSharedMemory INTEGER", [](const Launch& l) { return l.dynamic_shared_bytes; });
    shape("localMemoryPerThread INTEGER", [](const Launch& l) { return l.local_bytes_per_thread; });
    shape("sharedMemoryExecuted INTEGER", [](const Launch& l) { return l.shared_executed_bytes; });
    table.columns.push_back(
        {"gridId INTEGER", NumberOrNull([&kernels](size_t i) { return kernels.grid_id.At(i); })});
    to_.file->Append(table);
  }

  const KernelNames& Names(size_t row) {
    const uint32_t string = trace_.kernels.name[row];
    if (string >= names_.size()) names_.resize(string + 1);
    KernelNames& names = names_[string];
    if (names.readable == 0) {
      const std::string_view mangled = trace_.dictionary.String(string);
      const std::string readable = ReadableKernelName(mangled);
      names.readable = to_.strings->IdOf(readable);
      names.brief = to_.strings->IdOf(BaseName(readable));
      names.mangled = to_.strings->IdOf(mangled);
    }
    return names;
  }

  // Rows are asked for column by column, and neighbours often share a shape.
  const proto::LaunchShape* Shape(size_t row) {
    const uint32_t id = trace_.kernels.shape[row];
    if (id != last_shape_id_) {
      last_shape_id_ = id;
      last_shape_ = trace_.dictionary.Shape(id);
    }
    return last_shape_;
  }

  void AppendCopies() {
    const Copies& copies = trace_.copies;
    SqlTable table = Work(copies, "CUPTI_ACTIVITY_KIND_MEMCPY");
    const auto add = [&table](std::string_view declaration, auto value) {
      table.columns.push_back({declaration, Number(value)});
    };
    table.columns.push_back(BytesColumn(copies));
    add("copyKind INTEGER NOT NULL", [&](size_t i) { return copies.copy_kind[i]; });
    add("srcKind INTEGER", [&](size_t i) { return copies.src_kind[i]; });
    add("dstKind INTEGER", [&](size_t i) { return copies.dst_kind[i]; });
    const auto peer = [&](std::string_view declaration, const OptionalColumn<uint32_t>& column) {
      table.columns.push_back({declaration, [&copies, &column](size_t row, SqlValue to) {
                                 if (copies.peer.At(row) != 0) to.Set(int64_t{column.At(row)});
                               }});
    };
    peer("srcDeviceId INTEGER", copies.src_device);
    peer("srcContextId INTEGER", copies.src_context);
    peer("dstDeviceId INTEGER", copies.dst_device);
    peer("dstContextId INTEGER", copies.dst_context);
    table.columns.push_back(
        {"copyCount INTEGER", NumberOrNull([&](size_t i) { return copies.copies.At(i); })});
    to_.file->Append(table);
  }

  void AppendMemsets() {
    const Memsets& memsets = trace_.memsets;
    SqlTable table = Work(memsets, "CUPTI_ACTIVITY_KIND_MEMSET");
    const auto add = [&table](std::string_view declaration, auto value) {
      table.columns.push_back({declaration, Number(value)});
    };
    add("value INTEGER NOT NULL", [&](size_t i) { return memsets.value.At(i); });
    table.columns.push_back(BytesColumn(memsets));
    add("memKind INTEGER", [&](size_t i) { return memsets.memory_kind[i]; });
    to_.file->Append(table);
  }

  void AppendGraphLaunches() {
    SqlTable table = Work(trace_.graph_launches, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE");
    table.columns.pop_back();  // a whole graph is not a node
    to_.file->Append(table);
  }

  void AppendSyncs() {
    const Syncs& syncs = trace_.syncs;
    for (const Lane& lane : trace_.lanes) device_of_context_[lane.context] = lane.device;
    SqlTable table{
        .name = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", .columns = {}, .rows = syncs.size()};
    table.keeps = [&](size_t i) {
      return syncs.start[i] != kUntimed && to_.options.Keeps(syncs.start[i], syncs.end[i]);
    };
    const auto add = [&table](std::string_view declaration, auto value) {
      table.columns.push_back({declaration, Number(value)});
    };
    add("start INTEGER NOT NULL", [&](size_t i) { return syncs.start[i] + to_.shift_ns; });
    add("end INTEGER NOT NULL", [&](size_t i) { return syncs.end[i] + to_.shift_ns; });
    table.columns.push_back({"deviceId INTEGER", [&](size_t i, SqlValue to) {
                               const auto found = device_of_context_.find(syncs.context[i]);
                               if (found != device_of_context_.end())
                                 to.Set(int64_t{found->second});
                             }});
    add("contextId INTEGER NOT NULL", [&](size_t i) { return syncs.context[i]; });
    table.columns.push_back({"streamId INTEGER", [&](size_t i, SqlValue to) {
                               if (syncs.stream[i] != kNoStream) to.Set(int64_t{syncs.stream[i]});
                             }});
    add("correlationId INTEGER", [&](size_t i) { return syncs.correlation[i]; });
    add("globalPid INTEGER", [&](size_t) { return to_.global_pid; });
    add("syncType INTEGER NOT NULL", [&](size_t i) { return syncs.type[i]; });
    table.columns.push_back({"eventId INTEGER", [&](size_t i, SqlValue to) {
                               if (syncs.cuda_event[i] != kNoEvent) {
                                 to.Set(int64_t{syncs.cuda_event[i]});
                               }
                             }});
    table.columns.push_back({"eventSyncId INTEGER", NumberOrNull([&](size_t i) {
                               return syncs.cuda_event_sync_id.At(i);
                             })});
    to_.file->Append(table);
  }

  void AppendMemory() {
    const auto& memory = trace_.memory;
    SqlTable table{.name = "CUDA_GPU_MEMORY_USAGE_EVENTS", .columns = {}, .rows = memory.size()};
    table.keeps = [&](size_t i) {
      return to_.options.KeepsMoment(static_cast<int64_t>(memory[i].time_ns));
    };
    const auto add = [&table](std::string_view declaration, auto value) {
      table.columns.push_back({declaration, Number(value)});
    };
    add("start INTEGER NOT NULL",
        [&](size_t i) { return static_cast<int64_t>(memory[i].time_ns) + to_.shift_ns; });
    add("globalPid INTEGER NOT NULL", [&](size_t) { return to_.global_pid; });
    add("deviceId INTEGER NOT NULL", [&](size_t i) { return memory[i].device; });
    add("contextId INTEGER NOT NULL", [&](size_t i) { return memory[i].context; });
    add("address INTEGER NOT NULL", [&](size_t i) { return memory[i].address; });
    add("bytes INTEGER NOT NULL", [&](size_t i) { return memory[i].bytes; });
    add("memKind INTEGER NOT NULL", [&](size_t i) { return memory[i].memory_kind; });
    add("memoryOperationType INTEGER NOT NULL", [&](size_t i) { return memory[i].operation; });
    add("correlationId INTEGER", [&](size_t i) { return memory[i].correlation; });
    add("streamId INTEGER", [&](size_t i) { return memory[i].stream; });
    to_.file->Append(table);
  }

  const Trace& trace_;
  const SqlTraceTarget& to_;
  std::vector<KernelNames> names_;
  uint32_t last_shape_id_ = kNone;
  const proto::LaunchShape* last_shape_ = nullptr;
  std::unordered_map<uint32_t, uint32_t> device_of_context_;
};

}  // namespace

void AppendDeviceTables(const Trace& trace, const SqlTraceTarget& target) {
  DeviceTables(trace, target).Append();
}

}  // namespace ranktap::collector
