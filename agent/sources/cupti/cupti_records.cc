// One conversion a record family.
// Runs on: the drain thread.  May not: read a field that the loaded library does not write.
#include "agent/sources/cupti/cupti_records.h"

#include <time.h>

#include <cstring>
#include <string_view>

namespace ranktap::agent::cupti {
namespace {

template <typename Type>
const Type& As(const Record& record) {
  return reinterpret_cast<const Type&>(record);
}

// The drain thread is ours and may wait for the sender to free a chunk; CUPTI's pool fills
// meanwhile and then counts. Two seconds: by then the collector is gone rather than slow.
bool WaitForRoom(unsigned attempt) {
  constexpr unsigned kMostAttempts = 2000;
  constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 1'000'000};
  if (attempt >= kMostAttempts) return false;
  nanosleep(&kNap, nullptr);
  return true;
}

// Fills the fields that kernels, copies and memsets have in common; the rest of the event is 0.
template <typename Event, typename DeviceRecord>
Event DeviceFields(const DeviceRecord& record) {
  return {.start_ns = record.start,
          .end_ns = record.end,
          .graph_node = record.graph_node,
          .correlation = record.correlation,
          .device = record.device,
          .context = record.context,
          .stream = record.stream,
          .graph = record.graph,
          .channel = record.channel,
          .channel_type = static_cast<uint8_t>(record.channel_type)};
}

template <typename CopyRecord>
proto::CopyEvent CopyFields(const CopyRecord& record) {
  auto event = DeviceFields<proto::CopyEvent>(record);
  event.bytes = record.bytes;
  event.copy_kind = record.copy_kind;
  event.src_kind = record.src_kind;
  event.dst_kind = record.dst_kind;
  event.flags = record.flags;
  return event;
}

}  // namespace

template <typename Event>
void RecordReader::Count(const Event& event) {
  if constexpr (requires { event.graph; }) {
    untimed_ += event.start_ns == 0 ? 1 : 0;
    of_graphs_ += event.graph != 0 ? 1 : 0;
  }
}

// 0 is CUPTI's own word for "not timed": an end may be 0 alone, where its buffers ran out.
template <typename Event>
void RecordReader::DropImpossibleTimes(Event& event) {
  const auto is_possible = [this](uint64_t time) { return time == 0 || bounds_.Hold(time); };
  if constexpr (requires { event.start_ns; }) {
    if (is_possible(event.start_ns) && is_possible(event.end_ns)) [[likely]]
      return;
    event.start_ns = event.end_ns = 0;
    ++impossible_times_;
  } else if constexpr (requires { event.time_ns; }) {
    if (is_possible(event.time_ns)) [[likely]]
      return;
    event.time_ns = 0;
    ++impossible_times_;
  }
}

bool RecordReader::Emit(const Record& record, ThreadState& writer) {
  const auto emit = [this, &writer](auto event) {
    Count(event);
    DropImpossibleTimes(event);
    writer.EmitWaiting(event, WaitForRoom);
    return true;
  };
  switch (record.kind) {
    case Kind::kConcurrentKernel:
      return emit(ToKernel(As<KernelRecord>(record)));
    case Kind::kMemcpy:
      return emit(ToCopy(As<MemcpyRecord>(record)));
    case Kind::kMemcpy2:
      return emit(ToPeerCopy(As<PeerMemcpyRecord>(record)));
    case Kind::kMemset:
      return emit(ToMemset(As<MemsetRecord>(record)));
    case Kind::kSynchronization:
      return emit(ToSync(As<SynchronizationRecord>(record)));
    case Kind::kCudaEvent:
      return emit(ToCudaEvent(As<CudaEventRecord>(record)));
    case Kind::kGraphTrace:
      return emit(ToGraphLaunch(As<GraphTraceRecord>(record)));
    case Kind::kOverhead:
      return emit(ToOverhead(As<OverheadRecord>(record)));
    case Kind::kContext:
      return emit(ToContext(As<ContextRecord>(record)));
    case Kind::kStream:
      return emit(ToStream(As<StreamRecord>(record)));
    case Kind::kMemory2:
      return emit(ToMemory(As<MemoryRecord>(record)));
    case Kind::kMemoryPool:
      return emit(ToMemoryPool(As<MemoryPoolRecord>(record)));
    case Kind::kJit:
      return emit(ToJit(As<JitRecord>(record)));
    default:
      return false;
  }
}

proto::ArenaRef RecordReader::NameOf(const char* name) {
  if (name == nullptr) return 0;
  CachedName& line = cache_[(reinterpret_cast<uintptr_t>(name) >> 3) % kCachedNames];
  if (line.pointer == name && std::strcmp(line.name, name) == 0) return line.ref;
  const proto::ArenaRef ref = names_.InternText(name);
  if (ref == 0) {
    ++names_missing_;
    return 0;
  }
  line = {.pointer = name, .name = reinterpret_cast<const char*>(names_.Find(ref) + 1), .ref = ref};
  return ref;
}

proto::ArenaRef RecordReader::ShapeOf(const KernelRecord& record) {
  proto::LaunchShape shape{};
  for (int i = 0; i < 3; ++i) {
    shape.grid[i] = static_cast<uint32_t>(record.grid[i]);
    shape.block[i] = static_cast<uint32_t>(record.block[i]);
    shape.cluster[i] = record.cluster[i];
  }
  shape.registers_per_thread = record.registers_per_thread;
  shape.static_shared_bytes = static_cast<uint32_t>(record.static_shared);
  shape.dynamic_shared_bytes = static_cast<uint32_t>(record.dynamic_shared);
  shape.local_bytes_per_thread = record.local_per_thread;
  shape.shared_executed_bytes = record.shared_executed;
  if (AtLeast(kVersion120)) shape.max_active_clusters = record.max_active_clusters;
  const proto::ArenaRef ref =
      names_.Intern(proto::EntryKind::kLaunchShape, std::as_bytes(std::span(&shape, 1)));
  if (ref == 0) ++names_missing_;
  return ref;
}

proto::KernelEvent RecordReader::ToKernel(const KernelRecord& record) {
  CountUncorrelated(record.correlation, record.graph);
  auto event = DeviceFields<proto::KernelEvent>(record);
  event.grid_id = static_cast<uint64_t>(record.grid_id);
  event.name = NameOf(record.name);
  event.shape = ShapeOf(record);
  if (AtLeast(kVersion130)) event.device_launched = record.device_launched;
  return event;
}

proto::CopyEvent RecordReader::ToCopy(const MemcpyRecord& record) {
  CountUncorrelated(record.correlation, record.graph);
  auto event = CopyFields(record);
  if (AtLeast(kVersion128)) event.copies = record.copy_count;
  return event;
}

proto::CopyEvent RecordReader::ToPeerCopy(const PeerMemcpyRecord& record) {
  auto event = CopyFields(record);
  event.src_device = record.src_device;
  event.dst_device = record.dst_device;
  event.src_context = record.src_context;
  event.dst_context = record.dst_context;
  event.peer = 1;
  return event;
}

proto::MemsetEvent RecordReader::ToMemset(const MemsetRecord& record) {
  auto event = DeviceFields<proto::MemsetEvent>(record);
  event.bytes = record.bytes;
  event.value = record.value;
  event.memory_kind = record.memory_kind;
  event.flags = record.flags;
  return event;
}

proto::SyncEvent RecordReader::ToSync(const SynchronizationRecord& record) const {
  return {.start_ns = record.start,
          .end_ns = record.end,
          .cuda_event_sync_id = AtLeast(kVersion128) ? record.event_sync_id : 0,
          .correlation = record.correlation,
          .context = record.context,
          .stream = record.stream,
          .cuda_event = record.event,
          .type = record.type,
          .status = AtLeast(kVersion128) ? static_cast<int32_t>(record.return_value) : 0};
}

proto::CudaEventEvent RecordReader::ToCudaEvent(const CudaEventRecord& record) const {
  const bool wide = AtLeast(kVersion128);
  return {.device_ns = wide ? record.device_timestamp : 0,
          .cuda_event_sync_id = wide ? record.event_sync_id : 0,
          .correlation = record.correlation,
          .device = wide ? record.device : 0,
          .context = record.context,
          .stream = record.stream,
          .cuda_event = record.event};
}

proto::GraphLaunchEvent RecordReader::ToGraphLaunch(const GraphTraceRecord& record) const {
  const bool wide = AtLeast(kVersion123);
  return {.start_ns = record.start,
          .end_ns = record.end,
          .correlation = record.correlation,
          .device = record.device,
          .context = record.context,
          .stream = record.stream,
          .graph = record.graph,
          .end_device = wide ? record.end_device : record.device,
          .end_context = wide ? record.end_context : record.context};
}

proto::OverheadEvent RecordReader::ToOverhead(const OverheadRecord& record) const {
  return {.start_ns = record.start,
          .end_ns = record.end,
          .thread = record.object_kind == kObjectThread ? record.object_thread : 0,
          .overhead_kind = record.overhead_kind,
          .correlation = AtLeast(kVersion122) ? record.correlation : 0};
}

proto::ContextEvent RecordReader::ToContext(const ContextRecord& record) const {
  const bool green = AtLeast(kVersion124);
  return {.context = record.context,
          .device = record.device,
          .api_kind = record.api_kind,
          .null_stream = record.null_stream,
          .parent_context = green ? record.parent_context : 0,
          .multiprocessors = AtLeast(kVersion125) ? record.multiprocessors : uint32_t{0},
          .green = green ? record.green : uint32_t{0},
          .cig_mode = AtLeast(kVersion125) ? record.cig_mode : 0};
}

proto::StreamEvent RecordReader::ToStream(const StreamRecord& record) {
  return {.context = record.context,
          .stream = record.stream,
          .priority = static_cast<int32_t>(record.priority),
          .flags = record.flag,
          .correlation = record.correlation};
}

proto::MemoryEvent RecordReader::ToMemory(const MemoryRecord& record) {
  return {.time_ns = record.timestamp,
          .address = record.address,
          .bytes = record.bytes,
          .pool_address = record.pool_address,
          .pool_release_threshold = record.pool_release_threshold,
          .pool_size = record.pool_size,
          .pool_used = record.pool_used,
          .correlation = record.correlation,
          .device = record.device,
          .context = record.context,
          .stream = record.stream,
          .name = NameOf(record.name),
          .operation = record.operation,
          .memory_kind = record.memory_kind,
          .pool_type = static_cast<uint16_t>(record.pool_type),
          .is_async = static_cast<uint16_t>(record.is_async)};
}

proto::MemoryPoolEvent RecordReader::ToMemoryPool(const MemoryPoolRecord& record) {
  return {.time_ns = record.timestamp,
          .address = record.address,
          .release_threshold = record.release_threshold,
          .size = record.size,
          .used = record.used,
          .min_bytes_to_keep = record.min_bytes_to_keep,
          .correlation = record.correlation,
          .device = record.device,
          .operation = record.operation,
          .pool_type = record.pool_type};
}

proto::JitEvent RecordReader::ToJit(const JitRecord& record) {
  return {.start_ns = record.start,
          .end_ns = record.end,
          .operation_id = record.operation_id,
          .cache_bytes = record.cache_bytes,
          .device = record.device,
          .entry_type = record.entry_type,
          .operation = record.operation,
          .correlation = record.correlation};
}

}  // namespace ranktap::agent::cupti
