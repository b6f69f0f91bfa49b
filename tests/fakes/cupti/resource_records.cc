// Devices, contexts and streams as records; the resource callbacks.
#include <string.h>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/hook_functions.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

template <typename Layout>
void Write(const Layout& layout) {
  WriteRecord({static_cast<uint32_t>(layout.kind), &layout, sizeof layout});
}

bool Collects(CUpti_ActivityKind kind) { return HaveBufferCallbacks() && KindEnabled(kind); }

void WriteDevice(uint32_t device) {
  DeviceFacts facts;
  if (!Machine()->device_facts(device, &facts)) return;
  CUpti_ActivityDevice5 record{};
  record.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  record.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
  record.globalMemoryBandwidth = facts.memory_bandwidth_kb;
  record.globalMemorySize = facts.memory_bytes;
  record.constantMemorySize = 65536;
  record.l2CacheSize = facts.l2_bytes;
  record.numThreadsPerWarp = 32;
  record.coreClockRate = facts.clock_khz;
  record.numMemcpyEngines = 3;
  record.numMultiprocessors = facts.multiprocessors;
  record.maxWarpsPerMultiprocessor = 64;
  record.maxBlocksPerMultiprocessor = 32;
  record.maxSharedMemoryPerMultiprocessor = 233472;
  record.maxRegistersPerMultiprocessor = 65536;
  record.maxRegistersPerBlock = 65536;
  record.maxSharedMemoryPerBlock = 49152;
  record.maxThreadsPerBlock = 1024;
  record.maxBlockDimX = record.maxBlockDimY = 1024;
  record.maxBlockDimZ = 64;
  record.maxGridDimX = 2147483647;
  record.maxGridDimY = record.maxGridDimZ = 65535;
  record.computeCapabilityMajor = facts.major;
  record.computeCapabilityMinor = facts.minor;
  record.id = device;
  record.eccEnabled = 1;
  record.uuid = facts.uuid;
  record.name = strdup(facts.name);  // the client's to free, says the vendor
  record.isCudaVisible = 1;
  Write(record);
}

void RaiseGraph(const Resource& resource) {
  CUpti_GraphData data{};
  data.graph = resource.graph;
  data.originalGraph = resource.original_graph;
  data.node = resource.node;
  data.originalNode = resource.original_node;
  data.nodeType = resource.node_type;
  data.dependency = resource.dependency;
  data.graphExec = resource.graph_exec;
  // Which members hold for which callback is not promised: what is left is no address.
  if (resource.change == ResourceChange::kGraphExecDestroyStarting) {
    data.graph = reinterpret_cast<CUgraph>(0x5a5a'0000'0000'0000);
  }
  CUpti_ResourceData outer{};
  outer.context = resource.context;
  outer.resourceDescriptor = &data;
  Raise(CUPTI_CB_DOMAIN_RESOURCE, static_cast<uint32_t>(resource.change), &outer);
}

void RaiseModule(const Resource& resource) {
  CUpti_ModuleResourceData data{};
  data.moduleId = resource.module_id;
  data.cubinSize = resource.module_bytes;
  data.pCubin = static_cast<const char*>(resource.module_image);
  CUpti_ResourceData outer{};
  outer.context = resource.context;
  outer.resourceDescriptor = &data;
  Raise(CUPTI_CB_DOMAIN_RESOURCE, static_cast<uint32_t>(resource.change), &outer);
}

void RaiseResource(const Resource& resource) {
  if (!Wanted(CUPTI_CB_DOMAIN_RESOURCE, static_cast<uint32_t>(resource.change))) return;
  if (resource.graph != nullptr) return RaiseGraph(resource);
  if (resource.change == ResourceChange::kModuleLoaded ||
      resource.change == ResourceChange::kModuleUnloadStarting) {
    return RaiseModule(resource);
  }
  CUpti_ResourceData data{};
  data.context = resource.context;
  data.resourceHandle.stream = resource.stream;
  Raise(CUPTI_CB_DOMAIN_RESOURCE, static_cast<uint32_t>(resource.change), &data);
}

}  // namespace

void WriteDeviceRecords() {
  for (uint32_t device = 0; device < Machine()->device_count(); ++device) WriteDevice(device);
}

void WriteContextRecord(const Resource& resource) {
  CUpti_ActivityContext3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  record.contextId = resource.context_id;
  record.deviceId = resource.device;
  record.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  record.nullStreamId = static_cast<uint16_t>(resource.null_stream_id);
  Write(record);
}

void WriteStreamRecord(const Resource& resource) {
  CUpti_ActivityStream record{};
  record.kind = CUPTI_ACTIVITY_KIND_STREAM;
  record.contextId = resource.context_id;
  record.streamId = resource.stream_id;
  record.priority = static_cast<uint32_t>(resource.stream_priority);
  record.flag = static_cast<CUpti_ActivityStreamFlag>(resource.stream_flag);
  record.correlationId = resource.correlation;
  Write(record);
}

void OnResource(const Resource& resource) {
  switch (resource.change) {
    case ResourceChange::kInitFinished:
      if (Collects(CUPTI_ACTIVITY_KIND_DEVICE)) WriteDeviceRecords();
      break;
    case ResourceChange::kContextCreated:
      if (Collects(CUPTI_ACTIVITY_KIND_CONTEXT)) WriteContextRecord(resource);
      break;
    case ResourceChange::kStreamCreated:
      if (Collects(CUPTI_ACTIVITY_KIND_STREAM)) WriteStreamRecord(resource);
      break;
    default:
      break;
  }
  RaiseResource(resource);
}

}  // namespace ranktap::standin
