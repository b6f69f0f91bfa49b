// Kernels, copies, memsets and graph launches as records of the newest layout.
#include <stddef.h>
#include <csignal>

#include <algorithm>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/device_buffers.h"
#include "tests/fakes/cupti/hook_functions.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

template <typename Layout>
void Write(Layout& layout, const Operation& operation) {
  if (!HoldsTimes(operation)) layout.start = layout.end = 0;
  WriteRecord({static_cast<uint32_t>(layout.kind), &layout, sizeof layout, offsetof(Layout, start),
               offsetof(Layout, end), operation.start_ns, operation.end_ns});
}

// Of this thread's last kernel outside of graphs.
thread_local uint32_t last_kernel = 0;

// Before 13.1 U1, work of graphs comes with the id of another call in a process's later sessions.
uint32_t CorrelationOf(const Operation& operation) {
  const bool of_graph = operation.kind == OperationKind::kGraph || operation.graph_id != 0;
  const bool wrong = of_graph && Script().graph_ids_wrong && TheSubscription().count.load() > 1;
  return VisibleCorrelation(wrong ? last_kernel : operation.correlation, operation.api_domain,
                            operation.api_cbid);
}

template <typename Layout>
void FillPlace(Layout& layout, const Operation& operation) {
  layout.start = operation.start_ns;
  layout.end = operation.end_ns;
  layout.deviceId = operation.device;
  layout.contextId = operation.context_id;
  layout.streamId = operation.stream_id;
  layout.correlationId = CorrelationOf(operation);
  layout.graphId = operation.graph_id;
  layout.graphNodeId = operation.graph_node_id;
}

void WriteKernel(const Operation& operation) {
  const KernelShape& shape = operation.kernel;
  CUpti_ActivityKernel10 record{};
  record.kind = KindEnabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
                    ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                    : CUPTI_ACTIVITY_KIND_KERNEL;
  FillPlace(record, operation);
  record.registersPerThread = static_cast<uint16_t>(shape.registers);
  record.gridX = static_cast<int32_t>(shape.grid[0]);
  record.gridY = static_cast<int32_t>(shape.grid[1]);
  record.gridZ = static_cast<int32_t>(shape.grid[2]);
  record.blockX = static_cast<int32_t>(shape.block[0]);
  record.blockY = static_cast<int32_t>(shape.block[1]);
  record.blockZ = static_cast<int32_t>(shape.block[2]);
  record.staticSharedMemory = static_cast<int32_t>(shape.static_shared);
  record.dynamicSharedMemory = static_cast<int32_t>(shape.dynamic_shared);
  record.localMemoryPerThread = shape.local_per_thread;
  record.gridId = static_cast<int64_t>(operation.serial);
  record.name = shape.name;
  if (TheSubscription().latency_timestamps.load(std::memory_order_relaxed)) {
    record.queued = operation.queued_ns;
    record.submitted = operation.submitted_ns;
  }
  record.launchType = shape.cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
                                        : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
  record.sharedMemoryExecuted = shape.static_shared + shape.dynamic_shared;
  record.channelID = 8 + operation.stream_id % 8;
  record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  record.clusterX = shape.cluster[0];
  record.clusterY = shape.cluster[1];
  record.clusterZ = shape.cluster[2];
  Write(record, operation);
}

uint8_t CopyKind(const CopyShape& shape) {
  bool from_host = shape.source == MemoryKind::kPageable || shape.source == MemoryKind::kPinned;
  bool to_host = shape.target == MemoryKind::kPageable || shape.target == MemoryKind::kPinned;
  if (from_host && to_host) return CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
  if (from_host) return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  return to_host ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

template <typename Layout>
void FillCopy(Layout& layout, const Operation& operation) {
  FillPlace(layout, operation);
  layout.srcKind = static_cast<uint8_t>(operation.copy.source);
  layout.dstKind = static_cast<uint8_t>(operation.copy.target);
  layout.flags = operation.copy.async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  layout.bytes = operation.copy.bytes;
  layout.channelID = 16 + operation.stream_id % 8;
  layout.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
}

void WriteCopy(const Operation& operation) {
  CUpti_ActivityMemcpy6 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = CopyKind(operation.copy);
  FillCopy(record, operation);
  record.copyCount = 1;
  Write(record, operation);
}

void WritePeerCopy(const Operation& operation) {
  CUpti_ActivityMemcpyPtoP4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  FillCopy(record, operation);
  record.srcDeviceId = operation.copy.source_device;
  record.srcContextId = operation.copy.source_context;
  record.dstDeviceId = operation.copy.target_device;
  record.dstContextId = operation.copy.target_context;
  Write(record, operation);
}

void WriteMemset(const Operation& operation) {
  CUpti_ActivityMemset4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  FillPlace(record, operation);
  record.value = operation.memset.value;
  record.bytes = operation.memset.bytes;
  record.flags = operation.memset.async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
  record.memoryKind = static_cast<uint16_t>(operation.memset.kind);
  record.channelID = 16 + operation.stream_id % 8;
  record.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  Write(record, operation);
}

void WriteGraph(const Operation& operation) {
  CUpti_ActivityGraphTrace2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  record.correlationId = CorrelationOf(operation);
  record.start = operation.start_ns;
  record.end = operation.end_ns;
  record.deviceId = record.endDeviceId = operation.device;
  record.graphId = operation.graph_id;
  record.contextId = record.endContextId = operation.context_id;
  record.streamId = operation.stream_id;
  Write(record, operation);
}

}  // namespace

void OnOperation(const Operation& operation) {
  TellOfHardwareEvents();
  if (!HaveBufferCallbacks()) return;
  if (operation.kind == OperationKind::kGraph) {
    // A graph instantiated before its tracing was on gives nothing.
    const bool is_on = KindEnabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    if (is_on && operation.graph_was_traced) WriteGraph(operation);
    if (is_on && !operation.graph_was_traced && Script().old_graphs_crash) (void)raise(SIGSEGV);
    return;
  }
  // Once whole, whole for good: GRAPH_TRACE off ends its records and brings no node back (13.5).
  if (TheSubscription().graphs_whole.load() && operation.graph_id != 0) return;
  if (operation.graph_id != 0 && !TellsOfNodes(operation.graph_mark)) return;
  if (operation.graph_id == 0) last_kernel = operation.correlation;
  switch (operation.kind) {
    case OperationKind::kKernel:
      if (KindEnabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ||
          KindEnabled(CUPTI_ACTIVITY_KIND_KERNEL)) {
        WriteKernel(operation);
      }
      break;
    case OperationKind::kCopy:
      // In the first API, asking for MEMCPY brings MEMCPY2 along.
      if (operation.copy.peer) {
        if (KindEnabled(CUPTI_ACTIVITY_KIND_MEMCPY) || KindEnabled(CUPTI_ACTIVITY_KIND_MEMCPY2)) {
          WritePeerCopy(operation);
        }
      } else if (KindEnabled(CUPTI_ACTIVITY_KIND_MEMCPY)) {
        WriteCopy(operation);
      }
      break;
    case OperationKind::kMemset:
      if (KindEnabled(CUPTI_ACTIVITY_KIND_MEMSET)) WriteMemset(operation);
      break;
    case OperationKind::kGraph:
      break;
  }
}

}  // namespace ranktap::standin
