// Waits, events, memory, overhead and compilation as records; and the synchronisation callbacks.
#include <unistd.h>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/hook_functions.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

bool Collects(CUpti_ActivityKind kind) { return HaveBufferCallbacks() && KindEnabled(kind); }

template <typename Layout>
void Write(const Layout& layout) {
  WriteRecord({static_cast<uint32_t>(layout.kind), &layout, sizeof layout});
}

void RaiseSynchronized(const Synchronization& sync) {
  uint32_t cbid = sync.kind == SynchronizationKind::kStream
                      ? CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED
                      : CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED;
  bool has_callback =
      sync.kind == SynchronizationKind::kStream || sync.kind == SynchronizationKind::kContext;
  if (!has_callback || !Wanted(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid)) return;
  CUpti_SynchronizeData data{sync.context, sync.stream};
  Raise(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid, &data);
}

}  // namespace

void OnSynchronization(const Synchronization& sync) {
  if (Collects(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
    CUpti_ActivitySynchronization2 record{};
    record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    record.type = static_cast<CUpti_ActivitySynchronizationType>(sync.kind);
    record.start = sync.start_ns;
    record.end = sync.end_ns;
    record.correlationId = sync.correlation;
    record.contextId = sync.context_id;
    record.streamId = sync.stream_id;
    record.cudaEventId = sync.event_id;
    record.cudaEventSyncId = sync.event_sync_id;
    Write(record);
  }
  RaiseSynchronized(sync);
}

void OnEventRecord(const EventRecord& event) {
  if (!Collects(CUPTI_ACTIVITY_KIND_CUDA_EVENT)) return;
  CUpti_ActivityCudaEvent2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  record.correlationId = event.correlation;
  record.contextId = event.context_id;
  record.streamId = event.stream_id;
  record.eventId = event.event_id;
  record.deviceId = event.device;
  record.cudaEventSyncId = event.event_sync_id;
  if (TheSubscription().event_device_timestamps.load(std::memory_order_relaxed)) {
    record.deviceTimestamp = event.device_ns;
  }
  Write(record);
}

void OnMemory(const MemoryOperation& memory) {
  if (!Collects(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
  CUpti_ActivityMemory4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  record.memoryOperationType = memory.allocation ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                                 : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  record.memoryKind = static_cast<CUpti_ActivityMemoryKind>(memory.kind);
  record.correlationId = memory.correlation;
  record.address = memory.address;
  record.bytes = memory.bytes;
  record.timestamp = memory.device_ns;
  record.processId = static_cast<uint32_t>(getpid());
  record.deviceId = memory.device;
  record.contextId = memory.context_id;
  record.streamId = memory.stream_id;
  record.isAsync = memory.async;
  if (memory.pool_address != 0) {
    record.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    record.memoryPoolConfig.address = memory.pool_address;
    record.memoryPoolConfig.utilizedSize = memory.pool_used;
  }
  Write(record);
}

void OnPool(const PoolOperation& pool) {
  if (!Collects(CUPTI_ACTIVITY_KIND_MEMORY_POOL)) return;
  CUpti_ActivityMemoryPool3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
  record.memoryPoolOperationType = static_cast<CUpti_ActivityMemoryPoolOperationType>(pool.change);
  record.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  record.correlationId = pool.correlation;
  record.processId = static_cast<uint32_t>(getpid());
  record.deviceId = pool.device;
  record.minBytesToKeep = pool.bytes_to_keep;
  record.address = pool.address;
  record.timestamp = pool.device_ns;
  record.utilizedSize = pool.used;
  Write(record);
}

void OnOverhead(const Overhead& overhead) {
  if (!Collects(CUPTI_ACTIVITY_KIND_OVERHEAD)) return;
  static const CUpti_ActivityOverheadKind kKinds[] = {
      CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING,
      CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL,
      CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER};
  CUpti_ActivityOverhead3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  record.overheadKind = kKinds[static_cast<int>(overhead.kind)];
  record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  record.objectId.pt.processId = static_cast<uint32_t>(getpid());
  record.objectId.pt.threadId = RecordThreadId();
  record.start = overhead.start_ns;
  record.end = overhead.end_ns;
  record.correlationId = overhead.correlation;
  Write(record);
}

void OnCompilation(const Compilation& compilation) {
  if (!Collects(CUPTI_ACTIVITY_KIND_JIT)) return;
  static uint64_t last_operation = 0;
  CUpti_ActivityJit2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_JIT;
  record.jitEntryType = CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN;
  record.jitOperationType = CUPTI_ACTIVITY_JIT_OPERATION_COMPILE;
  record.deviceId = compilation.device;
  record.start = compilation.start_ns;
  record.end = compilation.end_ns;
  record.correlationId = compilation.correlation;
  record.jitOperationCorrelationId = __atomic_add_fetch(&last_operation, 1, __ATOMIC_RELAXED);
  record.processId = static_cast<uint32_t>(getpid());
  record.threadId = RecordThreadId();
  Write(record);
}

}  // namespace ranktap::standin
