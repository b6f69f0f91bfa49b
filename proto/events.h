// The plain structs that travel through a ring: written by a hook on the thread it runs on, read by
// the sender, or by the collector after the process has died. They are therefore part of the
// contract; kSegmentVersion (ring.h) changes with any of them.
//
// Rules: trivially copyable, a multiple of 8 bytes, explicit padding, EventHeader first. A member
// has a default where an event may have nothing to say: whoever makes one leaves it out. Variable
// parts (inline text, then payload) follow the struct; `EventHeader::bytes` counts everything.
// Times named `..._ticks` are the host clock of v1.Hello.host_clock (TSC or CLOCK_MONOTONIC_RAW);
// times named `..._ns` are CUPTI's clock (CLOCK_REALTIME in nanoseconds). An `ArenaRef` names an
// entry of the arena, 0 none.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ranktap::proto {

// Numbers are the field numbers in v1.Events: append, never reuse.
enum class EventKind : uint16_t {
  kKernel = 1,
  kCopy = 2,
  kMemset = 3,
  kApiCall = 4,
  kEventCall = 5,
  kSync = 6,
  kCudaEvent = 7,
  kGraphLaunch = 8,
  kRangePush = 9,
  kRangePop = 10,
  kRangeStart = 11,
  kRangeEnd = 12,
  kMark = 13,
  kName = 14,
  kMemory = 15,
  kMemoryPool = 16,
  kOverhead = 17,
  kContext = 18,
  kStream = 19,
  kResource = 20,
  kJit = 21,
};
inline constexpr uint16_t kMaxEventKind = 21;

// Offset of an entry in the arena, in units of kArenaAlign.
using ArenaRef = uint32_t;

struct EventHeader {
  uint16_t kind;   // EventKind
  uint16_t bytes;  // of the whole event, variable parts included; a multiple of 8
  uint16_t text_bytes;
  uint16_t payload_bytes;
};
static_assert(sizeof(EventHeader) == 8);

// A kernel that ran (CUPTI CONCURRENT_KERNEL).
struct KernelEvent {
  static constexpr EventKind kKind = EventKind::kKernel;
  EventHeader header = {};
  uint64_t start_ns, end_ns;
  uint64_t graph_node;  // node id of the executable graph; 0: not launched by a graph
  uint64_t grid_id;
  uint32_t correlation, device, context, stream;
  uint32_t graph;
  ArenaRef name;   // mangled
  ArenaRef shape;  // LaunchShape
  uint32_t channel;
  uint8_t channel_type;
  uint8_t device_launched;
  uint8_t pad[6] = {};
};

// A copy between memories (CUPTI MEMCPY, and MEMCPY2 between two devices).
struct CopyEvent {
  static constexpr EventKind kKind = EventKind::kCopy;
  EventHeader header = {};
  uint64_t start_ns, end_ns;
  uint64_t bytes;
  uint64_t graph_node;
  uint32_t correlation, device, context, stream;
  uint32_t graph;
  uint32_t src_device = 0, dst_device = 0, src_context = 0, dst_context = 0;  // peer copies only
  uint32_t channel;
  uint64_t copies = 0;  // in a batched copy; 0 or 1 otherwise
  uint8_t copy_kind;    // CUpti_ActivityMemcpyKind
  uint8_t src_kind;     // CUpti_ActivityMemoryKind
  uint8_t dst_kind;     // CUpti_ActivityMemoryKind
  uint8_t flags;        // CUPTI_ACTIVITY_FLAG_MEMCPY_*
  uint8_t peer = 0;     // 1: between two devices
  uint8_t channel_type;
  uint8_t pad[2] = {};
};

// CUPTI MEMSET.
struct MemsetEvent {
  static constexpr EventKind kKind = EventKind::kMemset;
  EventHeader header = {};
  uint64_t start_ns, end_ns;
  uint64_t bytes;
  uint64_t graph_node;
  uint32_t correlation, device, context, stream;
  uint32_t graph;
  uint32_t value;
  uint32_t channel;
  uint16_t memory_kind;
  uint16_t flags;
  uint8_t channel_type;
  uint8_t pad[7] = {};
};

// One call of the CUDA runtime or driver API: a launch, copy, allocation, synchronisation.
struct ApiCallEvent {
  static constexpr EventKind kKind = EventKind::kApiCall;
  EventHeader header = {};
  uint64_t start_ticks, end_ticks;
  uint32_t correlation;
  ArenaRef api;        // ApiFunction
  int32_t status;      // cudaError_t or CUresult
  ArenaRef stack = 0;  // Stack; 0: not captured
};

// A call that records, waits for or queries a CUDA event: with its arguments, which are what joins
// streams (handles are those of the program; ResourceEvent maps them to CUPTI's ids).
struct EventCallEvent {
  static constexpr EventKind kKind = EventKind::kEventCall;
  EventHeader header = {};
  uint64_t start_ticks, end_ticks;
  uint32_t correlation;
  ArenaRef api;
  int32_t status;
  ArenaRef stack = 0;
  uint64_t event = 0;   // cudaEvent_t
  uint64_t stream = 0;  // cudaStream_t; 0 where the call names none
};

// CUPTI SYNCHRONIZATION: the host waited, or a stream was told to.
struct SyncEvent {
  static constexpr EventKind kKind = EventKind::kSync;
  EventHeader header = {};
  uint64_t start_ns, end_ns;
  uint64_t cuda_event_sync_id;
  uint32_t correlation, context, stream;  // stream 0xffffffff: not about a stream
  uint32_t cuda_event;                    // 0xffffffff: not about an event
  uint32_t type;                          // CUpti_ActivitySynchronizationType
  int32_t status;
};

// CUPTI CUDA_EVENT: an event was recorded on a stream.
struct CudaEventEvent {
  static constexpr EventKind kKind = EventKind::kCudaEvent;
  EventHeader header = {};
  uint64_t device_ns;  // 0 unless device timestamps are on
  uint64_t cuda_event_sync_id;
  uint32_t correlation, device, context, stream;
  uint32_t cuda_event;
  uint32_t pad = 0;
};

// CUPTI GRAPH_TRACE: one launch of a whole graph.
struct GraphLaunchEvent {
  static constexpr EventKind kKind = EventKind::kGraphLaunch;
  EventHeader header = {};
  uint64_t start_ns, end_ns;
  uint32_t correlation, device, context, stream;
  uint32_t graph;
  uint32_t end_device, end_context;
  uint32_t pad = 0;
};

// An NVTX event carries this beside its time. `payload_type` is nvtxPayloadType_t, with
// kNvtxSchemaPayload for payloads that follow the event inline: repeated {u64 schema id, u64 bytes,
// bytes padded to 8}.
struct NvtxAttributes {
  ArenaRef domain = 0;  // NvtxDomain; 0: the default domain
  ArenaRef name = 0;    // string; 0 with text_bytes: the name follows inline
  uint64_t payload = 0;
  uint32_t category = 0;
  uint32_t color = 0;  // ARGB; 0: none
  uint32_t payload_type = 0;
  uint32_t payload_dropped = 0;  // bytes of extended payload over the cap, not kept
};
static_assert(sizeof(NvtxAttributes) == 32);

inline constexpr uint32_t kNvtxSchemaPayload = 0xDFBD0009;

// Bytes that need no schema (NVTX_TYPE_PAYLOAD_SCHEMA_RAW): what the hook for PyTorch says.
inline constexpr uint64_t kBytesSchema = 1023;

struct RangePushEvent {
  static constexpr EventKind kKind = EventKind::kRangePush;
  EventHeader header = {};
  uint64_t time_ticks;
  NvtxAttributes nvtx = {};
};

// Ends the innermost open push of the same domain on this writer.
struct RangePopEvent {
  static constexpr EventKind kKind = EventKind::kRangePop;
  EventHeader header = {};
  uint64_t time_ticks;
  ArenaRef domain;
  uint32_t pad = 0;
};

struct RangeStartEvent {
  static constexpr EventKind kKind = EventKind::kRangeStart;
  EventHeader header = {};
  uint64_t time_ticks;
  uint64_t range;  // unique in the process
  NvtxAttributes nvtx = {};
};

// May come from another writer than its start.
struct RangeEndEvent {
  static constexpr EventKind kKind = EventKind::kRangeEnd;
  EventHeader header = {};
  uint64_t time_ticks;
  uint64_t range;
};

struct MarkEvent {
  static constexpr EventKind kKind = EventKind::kMark;
  EventHeader header = {};
  uint64_t time_ticks;
  NvtxAttributes nvtx = {};
};

enum class NamedObject : uint32_t {
  kThread = 1,    // id: the operating system's thread id
  kCategory = 2,  // id: the category, scope: ArenaRef of the domain is in `domain`
  kDevice = 3,    // id: ordinal
  kContext = 4,   // id: CUcontext
  kStream = 5,    // id: cudaStream_t or CUstream
  kEvent = 6,     // id: cudaEvent_t or CUevent
  kResource = 7,  // id: the handle; `resource_type` as the program gave it
};

// The program gave something a name (nvtxName...).
struct NameEvent {
  static constexpr EventKind kKind = EventKind::kName;
  EventHeader header = {};
  uint64_t time_ticks;
  uint64_t id;
  NamedObject object;
  ArenaRef domain = 0;
  ArenaRef name;
  uint32_t resource_type = 0;
};

// CUPTI MEMORY2: device or host memory allocated or released through CUDA.
struct MemoryEvent {
  static constexpr EventKind kKind = EventKind::kMemory;
  EventHeader header = {};
  uint64_t time_ns;
  uint64_t address, bytes;
  uint64_t pool_address, pool_release_threshold, pool_size, pool_used;
  uint32_t correlation, device, context, stream;
  ArenaRef name;         // the variable, where CUPTI knows it
  uint32_t operation;    // CUpti_ActivityMemoryOperationType
  uint32_t memory_kind;  // CUpti_ActivityMemoryKind
  uint16_t pool_type;    // CUpti_ActivityMemoryPoolType
  uint16_t is_async;
};

// CUPTI MEMORY_POOL.
struct MemoryPoolEvent {
  static constexpr EventKind kKind = EventKind::kMemoryPool;
  EventHeader header = {};
  uint64_t time_ns;
  uint64_t address, release_threshold, size, used, min_bytes_to_keep;
  uint32_t correlation, device;
  uint32_t operation;  // CUpti_ActivityMemoryPoolOperationType
  uint32_t pool_type;
};

// CUPTI OVERHEAD: time the driver or CUPTI itself took.
struct OverheadEvent {
  static constexpr EventKind kKind = EventKind::kOverhead;
  EventHeader header = {};
  uint64_t start_ns, end_ns;
  uint64_t thread;         // of the host thread concerned, 0 unknown
  uint32_t overhead_kind;  // CUpti_ActivityOverheadKind
  uint32_t correlation;
};

struct ContextEvent {
  static constexpr EventKind kKind = EventKind::kContext;
  EventHeader header = {};
  uint32_t context, device;
  uint32_t api_kind;  // CUpti_ActivityComputeApiKind
  uint32_t null_stream;
  uint32_t parent_context;
  uint32_t multiprocessors;  // of a green context, 0 otherwise
  uint32_t green;
  uint32_t cig_mode;
};

struct StreamEvent {
  static constexpr EventKind kKind = EventKind::kStream;
  EventHeader header = {};
  uint32_t context, stream;
  int32_t priority;
  uint32_t flags;  // CUpti_ActivityStreamFlag
  uint32_t correlation;
  uint32_t pad = 0;
};

enum class ResourceChange : uint32_t {
  kContextCreated = 1,    // handle: CUcontext, id: context id
  kContextDestroyed = 2,  // the same
  kStreamCreated = 3,     // handle: CUstream, id: stream id, parent: context id
  kStreamDestroyed = 4,   // the same
  kGraphCreated = 5,      // handle: CUgraph, id: graph id
  kGraphDestroyed = 6,
  kGraphCloned = 7,       // parent: id of the graph it is a copy of
  kGraphExecCreated = 8,  // handle: CUgraphExec, id: its id, parent: graph id
  kGraphExecDestroyed = 9,
  kNodeCreated = 10,  // id: node id, parent: graph id, node_type
  kNodeCloned = 11,   // parent: node id of the original
  kNodeDestroyed = 12,
  kModuleLoaded = 13,  // id: module id, handle: bytes of the image
  kModuleUnloaded = 14,
};

// A context, stream or graph came or went (CUPTI resource callbacks).
struct ResourceEvent {
  static constexpr EventKind kKind = EventKind::kResource;
  EventHeader header = {};
  uint64_t time_ticks;
  uint64_t handle;
  uint64_t id;
  uint64_t parent;
  ResourceChange change;
  uint32_t node_type;  // CUgraphNodeType
};

// CUPTI JIT: PTX compiled or taken from the cache.
struct JitEvent {
  static constexpr EventKind kKind = EventKind::kJit;
  EventHeader header = {};
  uint64_t start_ns, end_ns;
  uint64_t operation_id;
  uint64_t cache_bytes;
  uint32_t device;
  uint32_t entry_type;  // CUpti_ActivityJitEntryType
  uint32_t operation;   // CUpti_ActivityJitOperationType
  uint32_t correlation;
};

// An arena entry of kind kLaunchShape. Kernels of one call site share a shape, so that a kernel
// event carries one small number in place of these fifteen.
struct LaunchShape {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t registers_per_thread;
  uint32_t static_shared_bytes, dynamic_shared_bytes;
  uint32_t local_bytes_per_thread;
  uint32_t shared_executed_bytes;  // shared memory the driver configured
  uint32_t max_active_clusters;
  int32_t priority;
};

template <typename Event>
inline constexpr bool kIsEvent = std::is_trivially_copyable_v<Event> && sizeof(Event) % 8 == 0 &&
                                 alignof(Event) <= 8 && std::is_standard_layout_v<Event>;

static_assert(kIsEvent<KernelEvent> && sizeof(KernelEvent) == 80);
static_assert(kIsEvent<CopyEvent> && sizeof(CopyEvent) == 96);
static_assert(kIsEvent<MemsetEvent> && sizeof(MemsetEvent) == 80);
static_assert(kIsEvent<ApiCallEvent> && sizeof(ApiCallEvent) == 40);
static_assert(kIsEvent<EventCallEvent> && sizeof(EventCallEvent) == 56);
static_assert(kIsEvent<SyncEvent> && sizeof(SyncEvent) == 56);
static_assert(kIsEvent<CudaEventEvent> && sizeof(CudaEventEvent) == 48);
static_assert(kIsEvent<GraphLaunchEvent> && sizeof(GraphLaunchEvent) == 56);
static_assert(kIsEvent<RangePushEvent> && sizeof(RangePushEvent) == 48);
static_assert(kIsEvent<RangePopEvent> && sizeof(RangePopEvent) == 24);
static_assert(kIsEvent<RangeStartEvent> && sizeof(RangeStartEvent) == 56);
static_assert(kIsEvent<RangeEndEvent> && sizeof(RangeEndEvent) == 24);
static_assert(kIsEvent<MarkEvent> && sizeof(MarkEvent) == 48);
static_assert(kIsEvent<NameEvent> && sizeof(NameEvent) == 40);
static_assert(kIsEvent<MemoryEvent> && sizeof(MemoryEvent) == 96);
static_assert(kIsEvent<MemoryPoolEvent> && sizeof(MemoryPoolEvent) == 72);
static_assert(kIsEvent<OverheadEvent> && sizeof(OverheadEvent) == 40);
static_assert(kIsEvent<ContextEvent> && sizeof(ContextEvent) == 40);
static_assert(kIsEvent<StreamEvent> && sizeof(StreamEvent) == 32);
static_assert(kIsEvent<ResourceEvent> && sizeof(ResourceEvent) == 48);
static_assert(kIsEvent<JitEvent> && sizeof(JitEvent) == 56);
static_assert(sizeof(LaunchShape) == 64);

}  // namespace ranktap::proto
