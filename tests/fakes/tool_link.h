// What the stand-in's three libraries say to each other.
//
// libcuda holds the machine. libcudart and libcupti reach it through
// cuGetExportTable(kMachineUuid), the way the vendor's libraries use among themselves, so that the
// exported names stay the vendor's. The three are always built together: nothing here is versioned.
// Names (`const char*`) live for ever. Hooks are called on the thread that caused them, with no
// lock of the machine held.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace ranktap::standin {

inline constexpr CUuuid kMachineUuid = {
    {'r', 'a', 'n', 'k', 't', 'a', 'p', ' ', 's', 't', 'a', 'n', 'd', '-', 'i', 'n'}};

enum class ApiDomain : uint32_t { kDriver = 1, kRuntime = 2 };  // as CUpti_CallbackDomain

// One call of the program, on its stack, from entry to return.
struct ApiCall {
  ApiDomain domain;
  uint32_t cbid;
  const char* name;
  const void* params;
  const char* symbol;    // the kernel of a launch, else null
  const void* result;    // CUresult* or cudaError_t*, set at exit
  CUcontext context;     // current at the moment of the callback
  uint32_t context_id;   // 0: none
  uint32_t correlation;  // a nested driver call has its runtime call's
  bool nested;
  uint64_t correlation_data;  // the tool's 64 bits between entry and exit
  uint64_t enter_device_ns;
  uint64_t enter_raw_ns;
  int32_t thread_id;
  uint32_t external_correlations;  // how many the tool pushed in this call; libcupti's own
};

enum class OperationKind : uint8_t { kKernel, kCopy, kMemset, kGraph };
enum class MemoryKind : uint8_t {  // as CUpti_ActivityMemoryKind
  kUnknown = 0,
  kPageable = 1,
  kPinned = 2,
  kDevice = 3,
  kArray = 4,
  kManaged = 5,
  kDeviceStatic = 6,
};

struct KernelShape {
  const char* name = nullptr;  // mangled
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {0, 0, 0};
  uint32_t dynamic_shared = 0;
  uint32_t static_shared = 0;
  uint32_t registers = 0;
  uint32_t local_per_thread = 0;
  bool cooperative = false;
};

struct CopyShape {
  uint64_t bytes = 0;
  MemoryKind source = MemoryKind::kUnknown;
  MemoryKind target = MemoryKind::kUnknown;
  uint32_t source_device = 0, source_context = 0;
  uint32_t target_device = 0, target_context = 0;
  bool peer = false;  // between two devices
  bool async = false;
};

struct MemsetShape {
  uint64_t bytes = 0;
  uint32_t value = 0;
  MemoryKind kind = MemoryKind::kDevice;
  bool async = false;
};

// Something a device did, or will have done by `end_ns`. Times are the device's clock.
struct Operation {
  OperationKind kind = OperationKind::kKernel;
  uint32_t device = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t correlation = 0;
  uint64_t queued_ns = 0;
  uint64_t submitted_ns = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t serial = 0;    // process-wide, in order of submission
  uint32_t graph_id = 0;  // the executable graph; 0 outside a graph launch
  uint64_t graph_node_id = 0;
  uint32_t graph_source_id = 0;   // the graph it was instantiated from
  bool graph_was_traced = false;  // a tool held graph-level tracing when it was instantiated
  uint32_t graph_mark = 0;        // the tool's, of then
  ApiDomain api_domain = ApiDomain::kDriver;  // the outermost call that submitted it
  uint32_t api_cbid = 0;
  KernelShape kernel;
  CopyShape copy;
  MemsetShape memset;
};

enum class SynchronizationKind : uint8_t {  // as CUpti_ActivitySynchronizationType
  kEvent = 1,
  kStreamWaitEvent = 2,
  kStream = 3,
  kContext = 4,
};

struct Synchronization {
  SynchronizationKind kind;
  CUcontext context;
  CUstream stream;
  uint32_t context_id;
  uint32_t stream_id;  // UINT32_MAX where none
  uint32_t event_id;   // UINT32_MAX where none
  uint64_t event_sync_id;
  uint32_t correlation;
  uint64_t start_ns;
  uint64_t end_ns;
};

struct EventRecord {
  uint32_t device, context_id, stream_id, event_id;
  uint64_t event_sync_id;
  uint32_t correlation;
  uint64_t device_ns;
};

struct MemoryOperation {
  bool allocation;
  MemoryKind kind;
  uint64_t address, bytes;
  uint64_t device_ns;
  uint32_t device, context_id, stream_id;  // stream UINT32_MAX where none
  uint32_t correlation;
  bool async;
  uint64_t pool_address;  // 0 where none
  uint64_t pool_used;
};

enum class PoolChange : uint8_t { kCreated = 1, kDestroyed = 2, kTrimmed = 3 };
struct PoolOperation {
  PoolChange change;
  uint64_t address, bytes_to_keep, used;
  uint32_t device, correlation;
  uint64_t device_ns;
};

enum class ResourceChange : uint32_t {  // as CUpti_CallbackIdResource
  kContextCreated = 1,
  kContextDestroyStarting = 2,
  kStreamCreated = 3,
  kStreamDestroyStarting = 4,
  kInitFinished = 5,
  kModuleLoaded = 6,
  kModuleUnloadStarting = 7,
  kGraphCreated = 9,
  kGraphDestroyStarting = 10,
  kGraphCloned = 11,
  kGraphNodeCreated = 13,
  kGraphNodeDestroyStarting = 14,
  kGraphNodeDependencyCreated = 15,
  kGraphExecCreateStarting = 17,
  kGraphExecCreated = 18,
  kGraphExecDestroyStarting = 19,
  kGraphNodeCloned = 20,
};

struct Resource {
  ResourceChange change;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  uint32_t device = 0, context_id = 0, stream_id = 0, null_stream_id = 0;
  int32_t stream_priority = 0;
  uint32_t stream_flag = 0;  // as CUpti_ActivityStreamFlag
  uint32_t correlation = 0;
  uint32_t module_id = 0;
  const void* module_image = nullptr;
  size_t module_bytes = 0;
  CUgraph graph = nullptr, original_graph = nullptr;
  CUgraphNode node = nullptr, original_node = nullptr, dependency = nullptr;
  CUgraphNodeType node_type = CU_GRAPH_NODE_TYPE_KERNEL;
  CUgraphExec graph_exec = nullptr;
};

enum class OverheadKind : uint8_t {
  kModuleLoading,
  kLazyFunctionLoading,
  kCommandBufferFull,
  kCompiler
};
struct Overhead {
  OverheadKind kind;
  uint64_t start_ns, end_ns;
  uint32_t correlation;
  int32_t thread_id;
  const char* name;
};

struct Compilation {
  uint32_t device, correlation;
  int32_t thread_id;
  uint64_t start_ns, end_ns;
};

// What a tool (libcupti) hears. Every function is set.
struct ToolHooks {
  void (*on_enter)(ApiCall&);
  void (*on_exit)(ApiCall&);
  void (*on_operation)(const Operation&);
  void (*on_synchronization)(const Synchronization&);
  void (*on_event_record)(const EventRecord&);
  void (*on_memory)(const MemoryOperation&);
  void (*on_pool)(const PoolOperation&);
  void (*on_resource)(const Resource&);
  void (*on_overhead)(const Overhead&);
  void (*on_compilation)(const Compilation&);
  bool (*traces_graphs)();       // graph-level tracing is on now
  uint32_t (*mark_new_graph)();  // what it is to say of its nodes (Operation::graph_mark)
  bool (*traces_launches)();     // each launch is followed by a command of the tool's
};

struct DeviceFacts {
  char name[64];
  CUuuid uuid;
  uint64_t memory_bytes, memory_bandwidth_kb;
  uint32_t clock_khz, multiprocessors, l2_bytes;
  uint32_t major, minor;
};

// What libcudart and libcupti may ask of the machine.
struct MachineLink {
  bool (*begin_call)(ApiCall&);  // false: the machine is unusable here, the call is not traced
  void (*end_call)(ApiCall&);
  void (*abandon_call)(ApiCall&);  // an exception of a callback passes through
  CUresult (*initialize)();        // cuInit without a traced call
  bool (*initialized)();
  bool (*in_forked_child)();
  const char* (*setting)(const char* name);                 // RANKTAP_STANDIN_<name>, or null
  uint64_t (*settings_generation)();                        // grows whenever a setting changes
  bool (*take_failure)(const char* function, int* status);  // a scripted error is due
  void (*note_refusal)(const char* function);
  void (*note_violation)(const char* what);  // a contract broken by the program or its tools
  uint64_t (*device_clock_ns)();
  void (*set_hooks)(const ToolHooks*);
  int32_t (*thread_id)();
  bool (*in_tool_callback)();
  void (*enter_tool_callback)(int delta);
  CUcontext (*current_context)();
  bool (*device_facts)(uint32_t device, DeviceFacts* facts);
  uint32_t (*device_count)();
  // 0 where the handle is null or not ours.
  uint32_t (*context_id)(CUcontext context);
  bool (*context_facts)(CUcontext context, Resource* facts);
  bool (*stream_id)(CUcontext context, CUstream stream, bool per_thread, uint32_t* id);
  uint32_t (*graph_id)(CUgraph graph);
  uint32_t (*graph_exec_id)(CUgraphExec exec);
  uint64_t (*graph_node_id)(CUgraphNode node);
  // Calls back once for every context and stream that lives now.
  void (*for_each_resource)(void (*visit)(const Resource&));
  const char* (*function_name)(CUfunction function);
  void (*note_subscription)(bool subscribed);
  bool (*take_device_memory)(uint32_t device, uint64_t bytes);
};

}  // namespace ranktap::standin
