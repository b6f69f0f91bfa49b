// CUPTI's binary interface, as far as we read it: our own prefix structs and numbers, so that no
// size or offset of a vendor header reaches run-time code and one binary serves CUPTI 11.8 to 13.x.
// All record families used here only ever grew at their end; tests/contract/cupti_abi_test.cc
// compares every offset and number with the headers. A field that came later says since when
// (CUPTI_API_VERSION); what a library of before leaves there is not read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ranktap::agent::cupti {

// The answer to a query about work that is not done: cudaErrorNotReady and CUDA_ERROR_NOT_READY.
inline constexpr int32_t kNotReady = 600;

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorInvalidParameter = 1;
inline constexpr Result kErrorMaxLimitReached = 12;
inline constexpr Result kErrorNotInitialized = 15;
inline constexpr Result kErrorNotSupported = 27;
inline constexpr Result kErrorVirtualizedDevice = 33;
inline constexpr Result kErrorMultipleSubscribers = 39;
inline constexpr Result kErrorConfidentialComputing = 41;
inline constexpr Result kErrorMigDevice = 43;
inline constexpr Result kErrorWslDevice = 45;
inline constexpr Result kErrorHardwareEventsUnderMps = 47;

enum class Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,
  kDriver = 4,
  kRuntime = 5,
  kDevice = 8,
  kContext = 9,
  kConcurrentKernel = 10,
  kName = 11,
  kMarker = 12,
  kMarkerData = 13,
  kOverhead = 17,
  kMemcpy2 = 22,
  kCudaEvent = 36,
  kStream = 37,
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kMemory2 = 49,
  kMemoryPool = 50,
  kGraphTrace = 51,
  kJit = 52,
};

enum class Domain : uint32_t { kDriver = 1, kRuntime = 2, kResource = 3, kState = 6 };
enum class Site : uint32_t { kEnter = 0, kExit = 1 };

enum class ResourceCbid : uint32_t {
  kContextCreated = 1,
  kContextDestroyStarting = 2,
  kStreamCreated = 3,
  kStreamDestroyStarting = 4,
  kCuInitFinished = 5,
  kModuleLoaded = 6,
  kModuleUnloadStarting = 7,
  kGraphCreated = 9,
  kGraphDestroyStarting = 10,
  kGraphCloned = 11,
  kGraphNodeCreated = 13,
  kGraphNodeDestroyStarting = 14,
  kGraphExecCreated = 18,
  kGraphExecDestroyStarting = 19,
  kGraphNodeCloned = 20,
};

inline constexpr int kAttributeDeviceBufferPoolLimit = 2;  // a size_t, the others here a byte
inline constexpr int kAttributeZeroedOutBuffer = 5;
inline constexpr int kAttributePerThreadBuffer = 9;  // since kVersion123
constexpr size_t AttributeBytes(int attribute) {
  return attribute == kAttributeDeviceBufferPoolLimit ? sizeof(size_t) : sizeof(uint8_t);
}
inline constexpr uint32_t kFlushForced = 1;
inline constexpr uint32_t kThreadIdSystem = 1;

// cuptiGetVersion: 18 is 11.8, and 12.0 as well; from CUDA 13.0 on it is xxyyzz.
inline constexpr uint32_t kVersion118 = 18;
inline constexpr uint32_t kVersion120 = 19;
inline constexpr uint32_t kVersion122 = 20;
inline constexpr uint32_t kVersion123 = 21;
inline constexpr uint32_t kVersion124 = 22;
inline constexpr uint32_t kVersion125 = 23;
inline constexpr uint32_t kVersion128 = 26;
inline constexpr uint32_t kVersion129 = 27;
inline constexpr uint32_t kVersion130 = 130000;
inline constexpr uint32_t kVersion130u1 = 130001;
inline constexpr uint32_t kVersion131u1 = 130101;
inline constexpr uint32_t kVersion132 = 130200;
inline constexpr uint32_t kVersion133 = 130300;
inline constexpr uint32_t kVersion134u1 = 130401;
// A major version that nobody has seen may have changed anything.
inline constexpr uint32_t kFirstUnknownVersion = 140000;

struct ApiCallbackData {
  Site site;
  uint32_t pad0;
  const char* function_name;
  const void* function_params;
  const int* return_value;
  const char* symbol_name;
  void* context;
  uint32_t context_uid;
  uint32_t pad1;
  uint64_t* correlation_data;
  uint32_t correlation_id;
  uint32_t pad2;
};

struct ResourceData {
  void* context;
  void* stream;
  const void* descriptor;
};

struct ModuleData {
  uint32_t module_id;
  uint32_t pad;
  uint64_t cubin_bytes;
};

inline constexpr uint32_t kStateFatalError = 1;  // told since kVersion122
inline constexpr uint32_t kStateError = 2;       // CUPTI goes on; told by 13.x at the latest

struct StateData {
  Result result;
  uint32_t pad;
  const char* message;  // may be nullptr
};

struct GraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  uint32_t node_type;
  uint32_t pad;
  void* dependency;
  void* graph_exec;
};

// Parameters of the event calls, as in generated_cuda_runtime_api_meta.h and generated_cuda_meta.h.
struct EventStreamParams {
  uint64_t event, stream;
};
struct StreamEventParams {
  uint64_t stream, event;
};

struct Record {
  Kind kind;
};

// This and MarkerRecord: another client's, which asked for them.
struct [[gnu::packed]] ApiRecord {  // CUpti_ActivityAPI
  Kind kind;
  uint32_t cbid;
  uint64_t start, end;
};

struct [[gnu::packed]] MarkerRecord {  // CUpti_ActivityMarker2
  Kind kind;
  uint32_t flags;
  uint64_t timestamp;
};

struct [[gnu::packed]] KernelRecord {  // CUpti_ActivityKernel8..
  Kind kind;
  uint8_t cache_config, shared_config;
  uint16_t registers_per_thread;
  uint32_t cache_requested, cache_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved0;
  uint64_t queued, submitted;
  uint8_t launch_type, carveout_requested, carveout, pad0;
  uint32_t shared_executed;
  uint64_t graph_node;
  uint32_t shmem_limit;
  uint32_t graph;
  void* access_policy;
  uint32_t channel, channel_type;
  uint32_t cluster[3];
  uint32_t cluster_policy;
  uint64_t local_total_v2;
  uint32_t max_potential_cluster;  // since kVersion120
  uint32_t max_active_clusters;
  uint8_t device_launched;  // since kVersion130
};

struct [[gnu::packed]] MemcpyRecord {  // CUpti_ActivityMemcpy5..
  Kind kind;
  uint8_t copy_kind, src_kind, dst_kind, flags;
  uint64_t bytes;
  uint64_t start, end;
  uint32_t device, context, stream;
  uint32_t correlation, runtime_correlation;
  uint32_t pad0;
  void* reserved0;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel, channel_type;
  uint8_t device_launched;
  uint8_t pad1[3];
  uint64_t copy_count;  // since kVersion128
};

struct [[gnu::packed]] PeerMemcpyRecord {  // CUpti_ActivityMemcpyPtoP4
  Kind kind;
  uint8_t copy_kind, src_kind, dst_kind, flags;
  uint64_t bytes;
  uint64_t start, end;
  uint32_t device, context, stream;
  uint32_t src_device, src_context, dst_device, dst_context;
  uint32_t correlation;
  void* reserved0;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel, channel_type;
};

struct [[gnu::packed]] MemsetRecord {  // CUpti_ActivityMemset4
  Kind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start, end;
  uint32_t device, context, stream;
  uint32_t correlation;
  uint16_t flags, memory_kind;
  uint32_t pad0;
  void* reserved0;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel, channel_type;
};

struct [[gnu::packed]] SynchronizationRecord {  // CUpti_ActivitySynchronization..
  Kind kind;
  uint32_t type;
  uint64_t start, end;
  uint32_t correlation, context, stream, event;
  uint64_t event_sync_id;  // since kVersion128
  uint32_t return_value;   // since kVersion128
};

struct [[gnu::packed]] CudaEventRecord {  // CUpti_ActivityCudaEvent..
  Kind kind;
  uint32_t correlation, context, stream, event;
  uint32_t pad0;
  uint32_t device;  // this and the rest: since kVersion128
  uint32_t pad1;
  void* reserved0;
  uint64_t device_timestamp;
  uint64_t event_sync_id;
};

struct [[gnu::packed]] GraphTraceRecord {  // CUpti_ActivityGraphTrace..
  Kind kind;
  uint32_t correlation;
  uint64_t start, end;
  uint32_t device, graph, context, stream;
  void* reserved;
  uint32_t end_device, end_context;  // since kVersion123
};

struct [[gnu::packed]] OverheadRecord {  // CUpti_ActivityOverhead..
  Kind kind;
  uint32_t overhead_kind;
  uint32_t object_kind;  // CUpti_ActivityObjectKind: 2 thread
  uint32_t object_process, object_thread;
  uint32_t object_rest;
  uint64_t start, end;
  uint32_t correlation;  // since kVersion122
};
inline constexpr uint32_t kObjectThread = 2;

struct [[gnu::packed]] ContextRecord {  // CUpti_ActivityContext..
  Kind kind;
  uint32_t context, device;
  uint16_t api_kind, null_stream;
  uint32_t parent_context;  // this and green: since kVersion124
  uint8_t green, pad0;
  uint16_t multiprocessors;
  uint32_t cig_mode;  // since kVersion125
};

struct [[gnu::packed]] StreamRecord {  // CUpti_ActivityStream
  Kind kind;
  uint32_t context, stream, priority, flag, correlation;
};

struct [[gnu::packed]] MemoryRecord {  // CUpti_ActivityMemory3..
  Kind kind;
  uint32_t operation, memory_kind, correlation;
  uint64_t address, bytes, timestamp, pc;
  uint32_t process, device, context, stream;
  const char* name;
  uint32_t is_async, pad0;
  uint32_t pool_type, pad1;
  uint64_t pool_address, pool_release_threshold, pool_size, pool_used;
};

struct [[gnu::packed]] MemoryPoolRecord {  // CUpti_ActivityMemoryPool2..
  Kind kind;
  uint32_t operation, pool_type, correlation, process, device;
  uint64_t min_bytes_to_keep;
  uint64_t address, size, release_threshold, timestamp, used;
};

struct [[gnu::packed]] JitRecord {  // CUpti_ActivityJit..
  Kind kind;
  uint32_t entry_type, operation, device;
  uint64_t start, end;
  uint32_t correlation, pad0;
  uint64_t operation_id, cache_bytes;
};

struct [[gnu::packed]] DeviceRecord {  // CUpti_ActivityDevice4..
  Kind kind;
  uint32_t flags;
  uint64_t memory_bandwidth, memory_bytes;
  uint32_t constant_bytes, l2_bytes, threads_per_warp, core_clock_khz, memcpy_engines;
  uint32_t multiprocessors, max_ipc, max_warps_per_multiprocessor, max_blocks_per_multiprocessor;
  uint32_t max_shared_per_multiprocessor, max_registers_per_multiprocessor;
  uint32_t max_registers_per_block, max_shared_per_block, max_threads_per_block;
  uint32_t max_block[3];
  uint32_t max_grid[3];
  uint32_t compute_major, compute_minor;
  uint32_t id;
  uint32_t ecc;
  uint8_t uuid[16];
  const char* name;  // ours to free, the documentation says; a few bytes a device, left alone
};

}  // namespace ranktap::agent::cupti
