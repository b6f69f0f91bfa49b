// Our own idea of CUPTI's records and numbers, against NVIDIA's headers. Built once for each
// version whose headers are there: a field that our struct says came with some version must be
// missing from the headers before it, and in its place in those after.
#include <cupti.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "agent/sources/cupti/cupti_abi.h"

namespace ranktap::agent::cupti {
namespace {

// What each version of the headers calls the newest of a family.
#if CUPTI_API_VERSION >= 130400
using Kernel = CUpti_ActivityKernel13;
using Pool = CUpti_ActivityMemoryPool3;
#elif CUPTI_API_VERSION >= 130100
using Kernel = CUpti_ActivityKernel11;
using Pool = CUpti_ActivityMemoryPool3;
#elif CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
using Pool = CUpti_ActivityMemoryPool3;
#elif CUPTI_API_VERSION >= 19
using Kernel = CUpti_ActivityKernel9;
using Pool = CUpti_ActivityMemoryPool2;
#else
using Kernel = CUpti_ActivityKernel8;
using Pool = CUpti_ActivityMemoryPool2;
#endif
#if CUPTI_API_VERSION >= 130500
using Copy = CUpti_ActivityMemcpy7;
using Sync = CUpti_ActivitySynchronization2;
using Event = CUpti_ActivityCudaEvent3;
#elif CUPTI_API_VERSION >= 26
using Copy = CUpti_ActivityMemcpy6;
using Sync = CUpti_ActivitySynchronization2;
using Event = CUpti_ActivityCudaEvent2;
#else
using Copy = CUpti_ActivityMemcpy5;
using Sync = CUpti_ActivitySynchronization;
using Event = CUpti_ActivityCudaEvent;
#endif
#if CUPTI_API_VERSION >= 24
using Memory = CUpti_ActivityMemory4;
#else
using Memory = CUpti_ActivityMemory3;
#endif
#if CUPTI_API_VERSION >= 130100
using Context = CUpti_ActivityContext4;
#elif CUPTI_API_VERSION >= 23
using Context = CUpti_ActivityContext3;
#elif CUPTI_API_VERSION >= 22
using Context = CUpti_ActivityContext2;
#else
using Context = CUpti_ActivityContext;
#endif
#if CUPTI_API_VERSION >= 22
using Overhead = CUpti_ActivityOverhead3;
using Jit = CUpti_ActivityJit2;
#elif CUPTI_API_VERSION >= 20
using Overhead = CUpti_ActivityOverhead2;
using Jit = CUpti_ActivityJit;
#else
using Overhead = CUpti_ActivityOverhead;
using Jit = CUpti_ActivityJit;
#endif
#if CUPTI_API_VERSION >= 21
using Graph = CUpti_ActivityGraphTrace2;
#else
using Graph = CUpti_ActivityGraphTrace;
#endif
#if CUPTI_API_VERSION >= 130200
using Device = CUpti_ActivityDevice6;
#elif CUPTI_API_VERSION >= 26
using Device = CUpti_ActivityDevice5;
#else
using Device = CUpti_ActivityDevice4;
#endif

#define EXPECT_SAME_FIELD(ours, our_field, theirs, their_field)                                 \
  EXPECT_EQ(offsetof(ours, our_field), offsetof(theirs, their_field)) << #ours "::" #our_field; \
  EXPECT_EQ(sizeof(ours::our_field), sizeof(theirs::their_field)) << #ours "::" #our_field
#define EXPECT_SAME_PLACE(ours, our_field, theirs, their_field) \
  EXPECT_EQ(offsetof(ours, our_field), offsetof(theirs, their_field)) << #ours "::" #our_field
// A field that came with `version` of CUPTI.
#define EXPECT_FIELD_SINCE(version, ours, our_field, theirs, their_field)               \
  []<typename Theirs>(std::type_identity<Theirs>) {                                     \
    if constexpr (requires(Theirs record) { record.their_field; }) {                    \
      EXPECT_GE(CUPTI_API_VERSION, static_cast<int>(version)) << #ours "::" #our_field; \
      EXPECT_EQ(offsetof(ours, our_field), offsetof(Theirs, their_field))               \
          << #ours "::" #our_field;                                                     \
    } else {                                                                            \
      EXPECT_LT(CUPTI_API_VERSION, static_cast<int>(version)) << #ours "::" #our_field; \
    }                                                                                   \
  }(std::type_identity<theirs>{})

TEST(CuptiAbiTest, KernelRecord) {
  EXPECT_SAME_FIELD(KernelRecord, kind, Kernel, kind);
  EXPECT_SAME_FIELD(KernelRecord, registers_per_thread, Kernel, registersPerThread);
  EXPECT_SAME_FIELD(KernelRecord, start, Kernel, start);
  EXPECT_SAME_FIELD(KernelRecord, end, Kernel, end);
  EXPECT_SAME_FIELD(KernelRecord, device, Kernel, deviceId);
  EXPECT_SAME_FIELD(KernelRecord, context, Kernel, contextId);
  EXPECT_SAME_FIELD(KernelRecord, stream, Kernel, streamId);
  EXPECT_SAME_PLACE(KernelRecord, grid, Kernel, gridX);
  EXPECT_SAME_PLACE(KernelRecord, block, Kernel, blockX);
  EXPECT_SAME_FIELD(KernelRecord, static_shared, Kernel, staticSharedMemory);
  EXPECT_SAME_FIELD(KernelRecord, dynamic_shared, Kernel, dynamicSharedMemory);
  EXPECT_SAME_FIELD(KernelRecord, local_per_thread, Kernel, localMemoryPerThread);
  EXPECT_SAME_FIELD(KernelRecord, correlation, Kernel, correlationId);
  EXPECT_SAME_FIELD(KernelRecord, grid_id, Kernel, gridId);
  EXPECT_SAME_FIELD(KernelRecord, name, Kernel, name);
  EXPECT_SAME_FIELD(KernelRecord, shared_executed, Kernel, sharedMemoryExecuted);
  EXPECT_SAME_FIELD(KernelRecord, graph_node, Kernel, graphNodeId);
  EXPECT_SAME_FIELD(KernelRecord, graph, Kernel, graphId);
  EXPECT_SAME_FIELD(KernelRecord, channel, Kernel, channelID);
  EXPECT_SAME_FIELD(KernelRecord, channel_type, Kernel, channelType);
  EXPECT_SAME_PLACE(KernelRecord, cluster, Kernel, clusterX);
  EXPECT_FIELD_SINCE(kVersion120, KernelRecord, max_active_clusters, Kernel, maxActiveClusters);
  EXPECT_FIELD_SINCE(kVersion130, KernelRecord, device_launched, Kernel, isDeviceLaunched);
}

TEST(CuptiAbiTest, CopyRecords) {
  EXPECT_SAME_FIELD(MemcpyRecord, copy_kind, Copy, copyKind);
  EXPECT_SAME_FIELD(MemcpyRecord, src_kind, Copy, srcKind);
  EXPECT_SAME_FIELD(MemcpyRecord, dst_kind, Copy, dstKind);
  EXPECT_SAME_FIELD(MemcpyRecord, flags, Copy, flags);
  EXPECT_SAME_FIELD(MemcpyRecord, bytes, Copy, bytes);
  EXPECT_SAME_FIELD(MemcpyRecord, start, Copy, start);
  EXPECT_SAME_FIELD(MemcpyRecord, end, Copy, end);
  EXPECT_SAME_FIELD(MemcpyRecord, device, Copy, deviceId);
  EXPECT_SAME_FIELD(MemcpyRecord, context, Copy, contextId);
  EXPECT_SAME_FIELD(MemcpyRecord, stream, Copy, streamId);
  EXPECT_SAME_FIELD(MemcpyRecord, correlation, Copy, correlationId);
  EXPECT_SAME_FIELD(MemcpyRecord, graph_node, Copy, graphNodeId);
  EXPECT_SAME_FIELD(MemcpyRecord, graph, Copy, graphId);
  EXPECT_SAME_FIELD(MemcpyRecord, channel, Copy, channelID);
  EXPECT_SAME_FIELD(MemcpyRecord, channel_type, Copy, channelType);
  EXPECT_FIELD_SINCE(kVersion128, MemcpyRecord, copy_count, Copy, copyCount);
  using Peer = CUpti_ActivityMemcpyPtoP4;
  EXPECT_SAME_FIELD(PeerMemcpyRecord, copy_kind, Peer, copyKind);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, bytes, Peer, bytes);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, start, Peer, start);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, src_device, Peer, srcDeviceId);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, src_context, Peer, srcContextId);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, dst_device, Peer, dstDeviceId);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, dst_context, Peer, dstContextId);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, correlation, Peer, correlationId);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, graph_node, Peer, graphNodeId);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, graph, Peer, graphId);
  EXPECT_SAME_FIELD(PeerMemcpyRecord, channel_type, Peer, channelType);
#if CUPTI_API_VERSION >= 130500
  using Set = CUpti_ActivityMemset5;
#else
  using Set = CUpti_ActivityMemset4;
#endif
  EXPECT_SAME_FIELD(MemsetRecord, value, Set, value);
  EXPECT_SAME_FIELD(MemsetRecord, bytes, Set, bytes);
  EXPECT_SAME_FIELD(MemsetRecord, start, Set, start);
  EXPECT_SAME_FIELD(MemsetRecord, correlation, Set, correlationId);
  EXPECT_SAME_FIELD(MemsetRecord, flags, Set, flags);
  EXPECT_SAME_FIELD(MemsetRecord, memory_kind, Set, memoryKind);
  EXPECT_SAME_FIELD(MemsetRecord, graph_node, Set, graphNodeId);
  EXPECT_SAME_FIELD(MemsetRecord, graph, Set, graphId);
  EXPECT_SAME_FIELD(MemsetRecord, channel_type, Set, channelType);
}

TEST(CuptiAbiTest, RecordsOfWaitingAndGraphs) {
  EXPECT_SAME_FIELD(SynchronizationRecord, type, Sync, type);
  EXPECT_SAME_FIELD(SynchronizationRecord, start, Sync, start);
  EXPECT_SAME_FIELD(SynchronizationRecord, correlation, Sync, correlationId);
  EXPECT_SAME_FIELD(SynchronizationRecord, context, Sync, contextId);
  EXPECT_SAME_FIELD(SynchronizationRecord, stream, Sync, streamId);
  EXPECT_SAME_FIELD(SynchronizationRecord, event, Sync, cudaEventId);
  EXPECT_FIELD_SINCE(kVersion128, SynchronizationRecord, event_sync_id, Sync, cudaEventSyncId);
  EXPECT_FIELD_SINCE(kVersion128, SynchronizationRecord, return_value, Sync, returnValue);
  EXPECT_SAME_FIELD(CudaEventRecord, correlation, Event, correlationId);
  EXPECT_SAME_FIELD(CudaEventRecord, event, Event, eventId);
  EXPECT_FIELD_SINCE(kVersion128, CudaEventRecord, device, Event, deviceId);
  EXPECT_FIELD_SINCE(kVersion128, CudaEventRecord, device_timestamp, Event, deviceTimestamp);
  EXPECT_FIELD_SINCE(kVersion128, CudaEventRecord, event_sync_id, Event, cudaEventSyncId);
  EXPECT_SAME_FIELD(GraphTraceRecord, correlation, Graph, correlationId);
  EXPECT_SAME_FIELD(GraphTraceRecord, start, Graph, start);
  EXPECT_SAME_FIELD(GraphTraceRecord, end, Graph, end);
  EXPECT_SAME_FIELD(GraphTraceRecord, device, Graph, deviceId);
  EXPECT_SAME_FIELD(GraphTraceRecord, graph, Graph, graphId);
  EXPECT_SAME_FIELD(GraphTraceRecord, context, Graph, contextId);
  EXPECT_SAME_FIELD(GraphTraceRecord, stream, Graph, streamId);
  EXPECT_FIELD_SINCE(kVersion123, GraphTraceRecord, end_device, Graph, endDeviceId);
  EXPECT_FIELD_SINCE(kVersion123, GraphTraceRecord, end_context, Graph, endContextId);
}

TEST(CuptiAbiTest, RecordsOfTheLibraryItself) {
  EXPECT_SAME_FIELD(OverheadRecord, overhead_kind, Overhead, overheadKind);
  EXPECT_SAME_FIELD(OverheadRecord, object_kind, Overhead, objectKind);
  EXPECT_SAME_PLACE(OverheadRecord, object_process, Overhead, objectId);
  EXPECT_EQ(offsetof(OverheadRecord, object_thread),
            offsetof(Overhead, objectId) + offsetof(CUpti_ActivityObjectKindId, pt.threadId));
  EXPECT_SAME_FIELD(OverheadRecord, start, Overhead, start);
  EXPECT_SAME_FIELD(OverheadRecord, end, Overhead, end);
  EXPECT_FIELD_SINCE(kVersion122, OverheadRecord, correlation, Overhead, correlationId);
  EXPECT_SAME_FIELD(ContextRecord, context, Context, contextId);
  EXPECT_SAME_FIELD(ContextRecord, api_kind, Context, computeApiKind);
  EXPECT_SAME_FIELD(ContextRecord, null_stream, Context, nullStreamId);
  EXPECT_FIELD_SINCE(kVersion124, ContextRecord, parent_context, Context, parentContextId);
  EXPECT_FIELD_SINCE(kVersion124, ContextRecord, green, Context, isGreenContext);
  EXPECT_FIELD_SINCE(kVersion125, ContextRecord, multiprocessors, Context, numMultiprocessors);
  EXPECT_FIELD_SINCE(kVersion125, ContextRecord, cig_mode, Context, cigMode);
  using Stream = CUpti_ActivityStream;
  EXPECT_SAME_FIELD(StreamRecord, stream, Stream, streamId);
  EXPECT_SAME_FIELD(StreamRecord, priority, Stream, priority);
  EXPECT_SAME_FIELD(StreamRecord, flag, Stream, flag);
  EXPECT_SAME_FIELD(StreamRecord, correlation, Stream, correlationId);
  EXPECT_SAME_FIELD(ApiRecord, start, CUpti_ActivityAPI, start);
  EXPECT_SAME_FIELD(ApiRecord, end, CUpti_ActivityAPI, end);
  EXPECT_SAME_FIELD(MarkerRecord, timestamp, CUpti_ActivityMarker2, timestamp);
  EXPECT_SAME_FIELD(JitRecord, entry_type, Jit, jitEntryType);
  EXPECT_SAME_FIELD(JitRecord, operation, Jit, jitOperationType);
  EXPECT_SAME_FIELD(JitRecord, device, Jit, deviceId);
  EXPECT_SAME_FIELD(JitRecord, start, Jit, start);
  EXPECT_SAME_FIELD(JitRecord, correlation, Jit, correlationId);
  EXPECT_SAME_FIELD(JitRecord, operation_id, Jit, jitOperationCorrelationId);
  EXPECT_SAME_FIELD(JitRecord, cache_bytes, Jit, cacheSize);
}

TEST(CuptiAbiTest, MemoryRecords) {
  EXPECT_SAME_FIELD(MemoryRecord, operation, Memory, memoryOperationType);
  EXPECT_SAME_FIELD(MemoryRecord, memory_kind, Memory, memoryKind);
  EXPECT_SAME_FIELD(MemoryRecord, correlation, Memory, correlationId);
  EXPECT_SAME_FIELD(MemoryRecord, address, Memory, address);
  EXPECT_SAME_FIELD(MemoryRecord, bytes, Memory, bytes);
  EXPECT_SAME_FIELD(MemoryRecord, timestamp, Memory, timestamp);
  EXPECT_SAME_FIELD(MemoryRecord, device, Memory, deviceId);
  EXPECT_SAME_FIELD(MemoryRecord, stream, Memory, streamId);
  EXPECT_SAME_FIELD(MemoryRecord, name, Memory, name);
  EXPECT_SAME_FIELD(MemoryRecord, is_async, Memory, isAsync);
  EXPECT_SAME_PLACE(MemoryRecord, pool_type, Memory, memoryPoolConfig.memoryPoolType);
  EXPECT_SAME_PLACE(MemoryRecord, pool_address, Memory, memoryPoolConfig.address);
  EXPECT_SAME_PLACE(MemoryRecord, pool_release_threshold, Memory,
                    memoryPoolConfig.releaseThreshold);
  EXPECT_SAME_PLACE(MemoryRecord, pool_size, Memory, memoryPoolConfig.pool);
  EXPECT_SAME_PLACE(MemoryRecord, pool_used, Memory, memoryPoolConfig.utilizedSize);
  EXPECT_SAME_FIELD(MemoryPoolRecord, operation, Pool, memoryPoolOperationType);
  EXPECT_SAME_FIELD(MemoryPoolRecord, pool_type, Pool, memoryPoolType);
  EXPECT_SAME_FIELD(MemoryPoolRecord, correlation, Pool, correlationId);
  EXPECT_SAME_FIELD(MemoryPoolRecord, device, Pool, deviceId);
  EXPECT_SAME_FIELD(MemoryPoolRecord, min_bytes_to_keep, Pool, minBytesToKeep);
  EXPECT_SAME_FIELD(MemoryPoolRecord, address, Pool, address);
  EXPECT_SAME_FIELD(MemoryPoolRecord, size, Pool, size);
  EXPECT_SAME_FIELD(MemoryPoolRecord, release_threshold, Pool, releaseThreshold);
  EXPECT_SAME_FIELD(MemoryPoolRecord, timestamp, Pool, timestamp);
  EXPECT_SAME_FIELD(MemoryPoolRecord, used, Pool, utilizedSize);
}

TEST(CuptiAbiTest, DeviceRecord) {
  EXPECT_SAME_FIELD(DeviceRecord, memory_bandwidth, Device, globalMemoryBandwidth);
  EXPECT_SAME_FIELD(DeviceRecord, memory_bytes, Device, globalMemorySize);
  EXPECT_SAME_FIELD(DeviceRecord, l2_bytes, Device, l2CacheSize);
  EXPECT_SAME_FIELD(DeviceRecord, threads_per_warp, Device, numThreadsPerWarp);
  EXPECT_SAME_FIELD(DeviceRecord, core_clock_khz, Device, coreClockRate);
  EXPECT_SAME_FIELD(DeviceRecord, multiprocessors, Device, numMultiprocessors);
  EXPECT_SAME_FIELD(DeviceRecord, max_warps_per_multiprocessor, Device, maxWarpsPerMultiprocessor);
  EXPECT_SAME_FIELD(DeviceRecord, max_blocks_per_multiprocessor, Device,
                    maxBlocksPerMultiprocessor);
  EXPECT_SAME_FIELD(DeviceRecord, max_shared_per_multiprocessor, Device,
                    maxSharedMemoryPerMultiprocessor);
  EXPECT_SAME_FIELD(DeviceRecord, max_registers_per_multiprocessor, Device,
                    maxRegistersPerMultiprocessor);
  EXPECT_SAME_FIELD(DeviceRecord, max_registers_per_block, Device, maxRegistersPerBlock);
  EXPECT_SAME_FIELD(DeviceRecord, max_shared_per_block, Device, maxSharedMemoryPerBlock);
  EXPECT_SAME_FIELD(DeviceRecord, max_threads_per_block, Device, maxThreadsPerBlock);
  EXPECT_SAME_FIELD(DeviceRecord, compute_major, Device, computeCapabilityMajor);
  EXPECT_SAME_FIELD(DeviceRecord, compute_minor, Device, computeCapabilityMinor);
  EXPECT_SAME_FIELD(DeviceRecord, id, Device, id);
  EXPECT_SAME_FIELD(DeviceRecord, uuid, Device, uuid);
  EXPECT_SAME_FIELD(DeviceRecord, name, Device, name);
}

TEST(CuptiAbiTest, CallbackData) {
  EXPECT_SAME_FIELD(ApiCallbackData, site, CUpti_CallbackData, callbackSite);
  EXPECT_SAME_FIELD(ApiCallbackData, function_params, CUpti_CallbackData, functionParams);
  EXPECT_SAME_FIELD(ApiCallbackData, return_value, CUpti_CallbackData, functionReturnValue);
  EXPECT_SAME_FIELD(ApiCallbackData, symbol_name, CUpti_CallbackData, symbolName);
  EXPECT_SAME_FIELD(ApiCallbackData, context, CUpti_CallbackData, context);
  EXPECT_SAME_FIELD(ApiCallbackData, context_uid, CUpti_CallbackData, contextUid);
  EXPECT_SAME_FIELD(ApiCallbackData, correlation_data, CUpti_CallbackData, correlationData);
  EXPECT_SAME_FIELD(ApiCallbackData, correlation_id, CUpti_CallbackData, correlationId);
  EXPECT_SAME_FIELD(ResourceData, context, CUpti_ResourceData, context);
  EXPECT_SAME_PLACE(ResourceData, stream, CUpti_ResourceData, resourceHandle);
  EXPECT_SAME_FIELD(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
  EXPECT_SAME_FIELD(ModuleData, module_id, CUpti_ModuleResourceData, moduleId);
  EXPECT_SAME_FIELD(ModuleData, cubin_bytes, CUpti_ModuleResourceData, cubinSize);
  EXPECT_SAME_FIELD(GraphData, graph, CUpti_GraphData, graph);
  EXPECT_SAME_FIELD(GraphData, original_graph, CUpti_GraphData, originalGraph);
  EXPECT_SAME_FIELD(GraphData, node, CUpti_GraphData, node);
  EXPECT_SAME_FIELD(GraphData, original_node, CUpti_GraphData, originalNode);
  EXPECT_SAME_FIELD(GraphData, node_type, CUpti_GraphData, nodeType);
  EXPECT_SAME_FIELD(GraphData, graph_exec, CUpti_GraphData, graphExec);
}

#if CUPTI_API_VERSION >= 20  // kVersion122
TEST(CuptiAbiTest, WhatCuptiSaysOfItsEnd) {
  EXPECT_SAME_FIELD(StateData, result, CUpti_StateData, notification.result);
  EXPECT_SAME_FIELD(StateData, message, CUpti_StateData, notification.message);
  EXPECT_EQ(static_cast<int>(kStateFatalError), CUPTI_CBID_STATE_FATAL_ERROR);
  EXPECT_EQ(static_cast<int>(kStateError), CUPTI_CBID_STATE_ERROR);
  EXPECT_EQ(static_cast<int>(Domain::kState), CUPTI_CB_DOMAIN_STATE);
}
#endif

TEST(CuptiAbiTest, ParametersOfEventCalls) {
  EXPECT_SAME_FIELD(EventStreamParams, event, cudaEventRecord_v3020_params, event);
  EXPECT_SAME_FIELD(EventStreamParams, stream, cudaEventRecord_v3020_params, stream);
  EXPECT_SAME_FIELD(EventStreamParams, stream, cudaEventRecordWithFlags_v11010_params, stream);
  EXPECT_SAME_FIELD(EventStreamParams, event, cudaEventSynchronize_v3020_params, event);
  EXPECT_SAME_FIELD(EventStreamParams, event, cudaEventQuery_v3020_params, event);
  EXPECT_SAME_FIELD(EventStreamParams, event, cuEventRecord_params, hEvent);
  EXPECT_SAME_FIELD(EventStreamParams, stream, cuEventRecord_params, hStream);
  EXPECT_SAME_FIELD(StreamEventParams, stream, cudaStreamWaitEvent_v3020_params, stream);
  EXPECT_SAME_FIELD(StreamEventParams, event, cudaStreamWaitEvent_v3020_params, event);
  EXPECT_SAME_FIELD(StreamEventParams, stream, cuStreamWaitEvent_params, hStream);
  EXPECT_SAME_FIELD(StreamEventParams, event, cuStreamWaitEvent_params, hEvent);
}

TEST(CuptiAbiTest, Numbers) {
  EXPECT_EQ(static_cast<int>(Kind::kMemcpy), CUPTI_ACTIVITY_KIND_MEMCPY);
  EXPECT_EQ(static_cast<int>(Kind::kMemset), CUPTI_ACTIVITY_KIND_MEMSET);
  EXPECT_EQ(static_cast<int>(Kind::kKernel), CUPTI_ACTIVITY_KIND_KERNEL);
  EXPECT_EQ(static_cast<int>(Kind::kName), CUPTI_ACTIVITY_KIND_NAME);
  EXPECT_EQ(static_cast<int>(Kind::kMarker), CUPTI_ACTIVITY_KIND_MARKER);
  EXPECT_EQ(static_cast<int>(Kind::kMarkerData), CUPTI_ACTIVITY_KIND_MARKER_DATA);
  EXPECT_EQ(static_cast<int>(Kind::kExternalCorrelation), CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  EXPECT_EQ(static_cast<int>(Kind::kDriver), CUPTI_ACTIVITY_KIND_DRIVER);
  EXPECT_EQ(static_cast<int>(Kind::kRuntime), CUPTI_ACTIVITY_KIND_RUNTIME);
  EXPECT_EQ(static_cast<int>(Kind::kDevice), CUPTI_ACTIVITY_KIND_DEVICE);
  EXPECT_EQ(static_cast<int>(Kind::kContext), CUPTI_ACTIVITY_KIND_CONTEXT);
  EXPECT_EQ(static_cast<int>(Kind::kConcurrentKernel), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT_EQ(static_cast<int>(Kind::kOverhead), CUPTI_ACTIVITY_KIND_OVERHEAD);
  EXPECT_EQ(static_cast<int>(Kind::kMemcpy2), CUPTI_ACTIVITY_KIND_MEMCPY2);
  EXPECT_EQ(static_cast<int>(Kind::kCudaEvent), CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  EXPECT_EQ(static_cast<int>(Kind::kStream), CUPTI_ACTIVITY_KIND_STREAM);
  EXPECT_EQ(static_cast<int>(Kind::kSynchronization), CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  EXPECT_EQ(static_cast<int>(Kind::kMemory2), CUPTI_ACTIVITY_KIND_MEMORY2);
  EXPECT_EQ(static_cast<int>(Kind::kMemoryPool), CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  EXPECT_EQ(static_cast<int>(Kind::kGraphTrace), CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  EXPECT_EQ(static_cast<int>(Kind::kJit), CUPTI_ACTIVITY_KIND_JIT);
  EXPECT_EQ(static_cast<int>(Domain::kDriver), CUPTI_CB_DOMAIN_DRIVER_API);
  EXPECT_EQ(static_cast<int>(Domain::kRuntime), CUPTI_CB_DOMAIN_RUNTIME_API);
  EXPECT_EQ(static_cast<int>(Domain::kResource), CUPTI_CB_DOMAIN_RESOURCE);
  EXPECT_EQ(static_cast<int>(Site::kExit), CUPTI_API_EXIT);
  EXPECT_EQ(static_cast<int>(ResourceCbid::kGraphNodeCloned), CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
  EXPECT_EQ(static_cast<int>(ResourceCbid::kGraphExecCreated),
            CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
  EXPECT_EQ(static_cast<int>(ResourceCbid::kGraphExecDestroyStarting),
            CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
  EXPECT_EQ(static_cast<int>(ResourceCbid::kGraphNodeCreated),
            CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
  EXPECT_EQ(static_cast<int>(ResourceCbid::kGraphNodeDestroyStarting),
            CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
  EXPECT_EQ(static_cast<int>(ResourceCbid::kGraphCreated), CUPTI_CBID_RESOURCE_GRAPH_CREATED);
  EXPECT_EQ(static_cast<int>(ResourceCbid::kModuleLoaded), CUPTI_CBID_RESOURCE_MODULE_LOADED);
  EXPECT_EQ(kAttributeDeviceBufferPoolLimit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
  EXPECT_EQ(kAttributeZeroedOutBuffer, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
  EXPECT_EQ(kNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(static_cast<int>(kFlushForced), CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  EXPECT_EQ(static_cast<int>(kThreadIdSystem), CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  EXPECT_EQ(kErrorMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
  EXPECT_EQ(kErrorNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(kErrorMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_EQ(static_cast<int>(kObjectThread), CUPTI_ACTIVITY_OBJECT_THREAD);
}

}  // namespace
}  // namespace ranktap::agent::cupti
