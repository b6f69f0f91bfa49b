// The devices' tables of an nsys file.
#include <algorithm>
#include <cstdlib>

#include "collector/import/largest_allocation.h"
#include "collector/import/nsys/nsys_rows.h"

namespace ranktap::collector {
namespace {

// Columns of every table of work on streams, in this order.
enum Work { kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kPid, kGraph, kNode, kMore };

std::vector<std::string_view> WorkColumns(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> columns = {"start",     "end",      "deviceId",
                                           "contextId", "streamId", "correlationId",
                                           "globalPid", "graphId",  "graphNodeId"};
  columns.insert(columns.end(), more);
  return columns;
}

class DeviceRows {
 public:
  explicit DeviceRows(const NsysTarget& target) : to_(target) {}

  void Read() {
    ReadKernels();
    ReadCopies();
    ReadMemsets();
    ReadGraphLaunches();
    ReadSyncs();
    ReadMemory();
  }

 private:
  // nullptr: the row has no times.
  template <typename TableOf>
  NsysProcess* AddWork(const SqlRow& row, TableOf table_of) {
    int64_t start = 0, end = 0;
    if (!ReadSpan(row, to_, &start, &end)) return nullptr;
    NsysProcess* const process = to_.process_of(row.Int(kPid));
    if (process == nullptr) return nullptr;
    DeviceWork& work = table_of(process->trace());
    const size_t at = work.size();
    work.start.push_back(start);
    work.end.push_back(end);
    work.correlation.push_back(row.Small(kCorrelation));
    work.lane.push_back(
        process->LaneOf({row.Small(kDevice), row.Small(kContext), row.Small(kStream)}));
    work.launch.push_back(kNone);
    SetOptional(&work.graph, at, row.Small(kGraph));
    SetOptional(&work.graph_node, at, static_cast<uint64_t>(row.Int(kNode)));
    ++process->trace().events;
    return process;
  }

  // CUPTI's number: unknown 0, pageable 1, ... managed static 7. nsys counts them without the
  // unknown, from pageable 0.
  uint32_t MemoryKind(const SqlRow& row, int column) const {
    constexpr int64_t kManagedStatic = 6;
    const int64_t kind = row.Int(column);
    if (to_.is_ours) return row.Small(column);
    const bool is_known = !row.IsNull(column) && kind >= 0 && kind <= kManagedStatic;
    return is_known ? static_cast<uint32_t>(kind) + 1 : 0;
  }

  void ReadKernels() {
    enum {
      kName = kMore,
      kMangled,
      kRegisters,
      kGridX,
      kGridY,
      kGridZ,
      kBlockX,
      kBlockY,
      kBlockZ,
      kStaticShared,
      kDynamicShared,
      kLocal,
      kExecuted,
      kGridId
    };
    const auto columns = WorkColumns({"demangledName", "mangledName", "registersPerThread", "gridX",
                                      "gridY", "gridZ", "blockX", "blockY", "blockZ",
                                      "staticSharedMemory", "dynamicSharedMemory",
                                      "localMemoryPerThread", "sharedMemoryExecuted", "gridId"});
    to_.file->ForEachRow("CUPTI_ACTIVITY_KIND_KERNEL", columns, [&](const SqlRow& row) {
      NsysProcess* const process =
          AddWork(row, [](Trace& trace) -> DeviceWork& { return trace.kernels; });
      if (process == nullptr) return;
      Kernels& kernels = process->trace().kernels;
      kernels.name.push_back(process->NameOf(row.Int(row.IsNull(kMangled) ? kName : kMangled)));
      if (row.IsNull(kGridX) && row.IsNull(kBlockX)) {
        kernels.shape.push_back(0);
      } else {
        proto::LaunchShape shape{};
        for (int i = 0; i < 3; ++i) shape.grid[i] = row.Small(kGridX + i);
        for (int i = 0; i < 3; ++i) shape.block[i] = row.Small(kBlockX + i);
        shape.registers_per_thread = row.Small(kRegisters);
        shape.static_shared_bytes = row.Small(kStaticShared);
        shape.dynamic_shared_bytes = row.Small(kDynamicShared);
        shape.local_bytes_per_thread = row.Small(kLocal);
        shape.shared_executed_bytes = row.Small(kExecuted);
        kernels.shape.push_back(process->ShapeOf(shape));
      }
      SetOptional(&kernels.grid_id, kernels.size() - 1, static_cast<uint64_t>(row.Int(kGridId)));
    });
  }

  void ReadCopies() {
    enum {
      kBytes = kMore,
      kKind,
      kFrom,
      kTo,
      kFromDevice,
      kFromContext,
      kToDevice,
      kToContext,
      kCount
    };
    const auto columns = WorkColumns({"bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId",
                                      "srcContextId", "dstDeviceId", "dstContextId", "copyCount"});
    to_.file->ForEachRow("CUPTI_ACTIVITY_KIND_MEMCPY", columns, [&](const SqlRow& row) {
      NsysProcess* const process =
          AddWork(row, [](Trace& trace) -> DeviceWork& { return trace.copies; });
      if (process == nullptr) return;
      Copies& copies = process->trace().copies;
      const size_t at = copies.size() - 1;
      SetOptional(&copies.bytes_unknown, copies.bytes.size(), row.IsNull(kBytes) ? 1 : 0);
      copies.bytes.push_back(static_cast<uint64_t>(row.Int(kBytes)));
      copies.copy_kind.push_back(static_cast<uint8_t>(row.Int(kKind)));
      copies.src_kind.push_back(static_cast<uint8_t>(MemoryKind(row, kFrom)));
      copies.dst_kind.push_back(static_cast<uint8_t>(MemoryKind(row, kTo)));
      SetOptional(&copies.copies, at, static_cast<uint64_t>(row.Int(kCount)));
      if (row.IsNull(kFromDevice) || row.IsNull(kToDevice)) return;
      SetOptional(&copies.peer, at, 1);
      SetOptional(&copies.src_device, at, row.Small(kFromDevice));
      SetOptional(&copies.src_context, at, row.Small(kFromContext));
      SetOptional(&copies.dst_device, at, row.Small(kToDevice));
      SetOptional(&copies.dst_context, at, row.Small(kToContext));
    });
  }

  void ReadMemsets() {
    enum { kValue = kMore, kBytes, kKind };
    const auto columns = WorkColumns({"value", "bytes", "memKind"});
    to_.file->ForEachRow("CUPTI_ACTIVITY_KIND_MEMSET", columns, [&](const SqlRow& row) {
      NsysProcess* const process =
          AddWork(row, [](Trace& trace) -> DeviceWork& { return trace.memsets; });
      if (process == nullptr) return;
      Memsets& memsets = process->trace().memsets;
      SetOptional(&memsets.value, memsets.size() - 1, row.Small(kValue));
      SetOptional(&memsets.bytes_unknown, memsets.bytes.size(), row.IsNull(kBytes) ? 1 : 0);
      memsets.bytes.push_back(static_cast<uint64_t>(row.Int(kBytes)));
      memsets.memory_kind.push_back(static_cast<uint16_t>(MemoryKind(row, kKind)));
    });
  }

  void ReadGraphLaunches() {
    to_.file->ForEachRow(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", WorkColumns({}), [&](const SqlRow& row) {
          AddWork(row, [](Trace& trace) -> DeviceWork& { return trace.graph_launches; });
        });
  }

  void ReadSyncs() {
    enum { kSyncContext = 2, kSyncStream, kSyncCorrelation, kSyncPid, kType, kEvent, kEventSync };
    static constexpr std::string_view kColumns[] = {"start",    "end",           "contextId",
                                                    "streamId", "correlationId", "globalPid",
                                                    "syncType", "eventId",       "eventSyncId"};
    to_.file->ForEachRow("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", kColumns, [&](const SqlRow& row) {
      int64_t start = 0, end = 0;
      if (!ReadSpan(row, to_, &start, &end)) return;
      NsysProcess* const process = to_.process_of(row.Int(kSyncPid));
      if (process == nullptr) return;
      Syncs& syncs = process->trace().syncs;
      const size_t at = syncs.size();
      syncs.start.push_back(start);
      syncs.end.push_back(end);
      syncs.correlation.push_back(row.Small(kSyncCorrelation));
      syncs.context.push_back(row.Small(kSyncContext));
      syncs.stream.push_back(row.IsNull(kSyncStream) ? kNone : row.Small(kSyncStream));
      syncs.cuda_event.push_back(row.IsNull(kEvent) ? kNone : row.Small(kEvent));
      syncs.type.push_back(static_cast<uint8_t>(row.Int(kType)));
      SetOptional(&syncs.cuda_event_sync_id, at, static_cast<uint64_t>(row.Int(kEventSync)));
      ++process->trace().events;
    });
  }

  void ReadMemory() {
    enum {
      kMoment,
      kMemoryPid,
      kMemoryDevice,
      kMemoryContext,
      kAddress,
      kBytes,
      kKind,
      kOperation,
      kMemoryCorrelation,
      kMemoryStream
    };
    static constexpr std::string_view kColumns[] = {
        "start",   "globalPid",           "deviceId",      "contextId", "address", "bytes",
        "memKind", "memoryOperationType", "correlationId", "streamId"};
    to_.file->ForEachRow("CUDA_GPU_MEMORY_USAGE_EVENTS", kColumns, [&](const SqlRow& row) {
      NsysProcess* const process = to_.process_of(row.Int(kMemoryPid));
      if (process == nullptr) return;
      const int64_t time = row.Int(kMoment), bytes = row.Int(kBytes);
      if (row.IsNull(kMoment) || std::abs(time / 2) > kFarthestTime / 2 || bytes < 0 ||
          bytes > kLargestAllocation) {
        ++(*to_.skipped)["memory events without a time or a size"];
        return;
      }
      proto::MemoryEvent event{};
      event.time_ns = static_cast<uint64_t>(time);
      event.address = static_cast<uint64_t>(row.Int(kAddress));
      event.bytes = static_cast<uint64_t>(bytes);
      event.correlation = row.Small(kMemoryCorrelation);
      event.device = row.Small(kMemoryDevice);
      event.context = row.Small(kMemoryContext);
      event.stream = row.Small(kMemoryStream);
      // nsys: 0 allocates and 1 frees; CUPTI: 1 and 2.
      event.operation = row.Small(kOperation) + (to_.is_ours ? 0 : 1);
      event.memory_kind = MemoryKind(row, kKind);
      process->trace().memory.push_back(event);
      ++process->trace().events;
    });
  }

  const NsysTarget& to_;
};

}  // namespace

void ReadNsysDevices(const NsysTarget& target) { DeviceRows(target).Read(); }

}  // namespace ranktap::collector
