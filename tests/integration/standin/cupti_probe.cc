// A reference CUPTI client, injected with CUDA_INJECTION64_PATH: writes what it is told as JSON
// lines, in the words of the stand-in's truth log, so that a test can compare the two.
//
// PROBE_OUT     folder for probe.<pid>.jsonl
// PROBE_KINDS   activity kinds, comma separated (numbers)
// PROBE_APIS    1: callbacks of the runtime and driver domains; 2: of the resource domain too
// PROBE_BUFFER  bytes per activity buffer (65536)
// PROBE_FLUSH   milliseconds between cuptiActivityFlushAll(0) from a thread of its own (0: never)
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <string>

#include "tests/lent_buffers.h"

namespace {

FILE* g_out = nullptr;
std::mutex g_out_mutex;
CUpti_SubscriberHandle g_subscriber;
ranktap::LentBuffers g_lent;

#define CUPTI(name) (reinterpret_cast<decltype(&name)>(Find(#name)))

void* Find(const char* name) {
  static void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  void* function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) {
    fprintf(stderr, "cupti_probe: no %s in libcupti.so.13\n", name);
    _exit(99);
  }
  return function;
}

__attribute__((format(printf, 1, 2))) void Line(const char* format, ...) {
  // Output is a cancellation point, and the threads here are the program's.
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  std::unique_lock lock(g_out_mutex);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(g_out, format, arguments);
  va_end(arguments);
  fputc('\n', g_out);
  lock.unlock();
  pthread_setcancelstate(before, nullptr);
}

uint64_t Number(const char* variable, uint64_t fallback) {
  const char* text = getenv(variable);
  return text == nullptr ? fallback : strtoull(text, nullptr, 10);
}

void OnKernel(const CUpti_ActivityKernel10& r) {
  Line(
      "{\"type\":\"kernel\",\"name\":\"%s\",\"device\":%u,\"context\":%u,\"stream\":%u,"
      "\"correlation\":%u,\"start_ns\":%lu,\"end_ns\":%lu,\"graph\":%u,\"graph_node\":%lu,"
      "\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],\"cluster\":[%u,%u,%u],\"static_shared\":%d,"
      "\"dynamic_shared\":%d,\"registers\":%u}",
      r.name, r.deviceId, r.contextId, r.streamId, r.correlationId, r.start, r.end, r.graphId,
      r.graphNodeId, r.gridX, r.gridY, r.gridZ, r.blockX, r.blockY, r.blockZ, r.clusterX,
      r.clusterY, r.clusterZ, r.staticSharedMemory, r.dynamicSharedMemory, r.registersPerThread);
}

void OnCopy(const CUpti_ActivityMemcpy6& r) {
  Line(
      "{\"type\":\"copy\",\"device\":%u,\"context\":%u,\"stream\":%u,\"correlation\":%u,"
      "\"start_ns\":%lu,\"end_ns\":%lu,\"graph\":%u,\"graph_node\":%lu,\"bytes\":%lu,"
      "\"copy_kind\":%u,\"from_kind\":%u,\"to_kind\":%u,\"async\":%s}",
      r.deviceId, r.contextId, r.streamId, r.correlationId, r.start, r.end, r.graphId,
      r.graphNodeId, r.bytes, r.copyKind, r.srcKind, r.dstKind,
      (r.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0 ? "true" : "false");
}

void OnPeerCopy(const CUpti_ActivityMemcpyPtoP4& r) {
  Line(
      "{\"type\":\"peer_copy\",\"device\":%u,\"context\":%u,\"stream\":%u,\"correlation\":%u,"
      "\"start_ns\":%lu,\"end_ns\":%lu,\"graph\":%u,\"graph_node\":%lu,\"bytes\":%lu,"
      "\"from_device\":%u,\"to_device\":%u,\"async\":%s}",
      r.deviceId, r.contextId, r.streamId, r.correlationId, r.start, r.end, r.graphId,
      r.graphNodeId, r.bytes, r.srcDeviceId, r.dstDeviceId,
      (r.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0 ? "true" : "false");
}

void OnMemset(const CUpti_ActivityMemset4& r) {
  Line(
      "{\"type\":\"memset\",\"device\":%u,\"context\":%u,\"stream\":%u,\"correlation\":%u,"
      "\"start_ns\":%lu,\"end_ns\":%lu,\"graph\":%u,\"graph_node\":%lu,\"bytes\":%lu,"
      "\"value\":%u,\"async\":%s}",
      r.deviceId, r.contextId, r.streamId, r.correlationId, r.start, r.end, r.graphId,
      r.graphNodeId, r.bytes, r.value,
      (r.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0 ? "true" : "false");
}

void OnGraph(const CUpti_ActivityGraphTrace2& r) {
  Line(
      "{\"type\":\"graph_launch\",\"device\":%u,\"context\":%u,\"stream\":%u,\"correlation\":%u,"
      "\"start_ns\":%lu,\"end_ns\":%lu,\"graph\":%u}",
      r.deviceId, r.contextId, r.streamId, r.correlationId, r.start, r.end, r.graphId);
}

void OnSynchronization(const CUpti_ActivitySynchronization2& r) {
  static const char* const kKinds[] = {"", "event", "stream_wait_event", "stream", "context"};
  Line(
      "{\"type\":\"synchronization\",\"kind\":\"%s\",\"context\":%u,\"stream\":%d,\"event\":%d,"
      "\"event_sync\":%lu,\"correlation\":%u,\"start_ns\":%lu,\"end_ns\":%lu}",
      kKinds[r.type], r.contextId, static_cast<int>(r.streamId), static_cast<int>(r.cudaEventId),
      r.cudaEventSyncId, r.correlationId, r.start, r.end);
}

void OnEvent(const CUpti_ActivityCudaEvent2& r) {
  Line(
      "{\"type\":\"event_record\",\"device\":%u,\"context\":%u,\"stream\":%u,\"event\":%u,"
      "\"event_sync\":%lu,\"correlation\":%u,\"device_ns\":%lu}",
      r.deviceId, r.contextId, r.streamId, r.eventId, r.cudaEventSyncId, r.correlationId,
      r.deviceTimestamp);
}

void OnMemory(const CUpti_ActivityMemory4& r) {
  Line(
      "{\"type\":\"memory\",\"operation\":\"%s\",\"address\":%lu,\"bytes\":%lu,\"device\":%u,"
      "\"context\":%u,\"stream\":%d,\"correlation\":%u,\"async\":%s,\"device_ns\":%lu}",
      r.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION ? "allocate"
                                                                               : "free",
      r.address, r.bytes, r.deviceId, r.contextId, static_cast<int>(r.streamId), r.correlationId,
      r.isAsync != 0 ? "true" : "false", r.timestamp);
}

void OnApi(const CUpti_ActivityAPI& r) {
  Line(
      "{\"type\":\"api_record\",\"domain\":\"%s\",\"cbid\":%u,\"correlation\":%u,\"thread\":%u,"
      "\"start_ns\":%lu,\"end_ns\":%lu,\"status\":%u}",
      r.kind == CUPTI_ACTIVITY_KIND_DRIVER ? "driver" : "runtime", r.cbid, r.correlationId,
      r.threadId, r.start, r.end, r.returnValue);
}

void OnDevice(const CUpti_ActivityDevice5& r) {
  Line("{\"type\":\"device\",\"device\":%u,\"name\":\"%s\",\"memory\":%lu,\"sms\":%u}", r.id,
       r.name, r.globalMemorySize, r.numMultiprocessors);
  free(const_cast<char*>(r.name));
}

void OnOther(const CUpti_Activity& record) {
  Line("{\"type\":\"other\",\"kind\":%u}", static_cast<unsigned>(record.kind));
}

void OnRecord(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return OnKernel(*reinterpret_cast<const CUpti_ActivityKernel10*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return OnCopy(*reinterpret_cast<const CUpti_ActivityMemcpy6*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return OnPeerCopy(*reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return OnMemset(*reinterpret_cast<const CUpti_ActivityMemset4*>(record));
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return OnGraph(*reinterpret_cast<const CUpti_ActivityGraphTrace2*>(record));
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return OnSynchronization(*reinterpret_cast<const CUpti_ActivitySynchronization2*>(record));
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return OnEvent(*reinterpret_cast<const CUpti_ActivityCudaEvent2*>(record));
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return OnMemory(*reinterpret_cast<const CUpti_ActivityMemory4*>(record));
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return OnApi(*reinterpret_cast<const CUpti_ActivityAPI*>(record));
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return OnDevice(*reinterpret_cast<const CUpti_ActivityDevice5*>(record));
    default:
      return OnOther(*record);
  }
}

void OnBufferRequested(uint8_t** buffer, size_t* size, size_t* most) {
  *size = Number("PROBE_BUFFER", 65536);
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, *size));
  memset(*buffer, 0xa5, *size);  // used memory
  g_lent.Lend();
  *most = 0;
}

void OnBufferCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  Line("{\"type\":\"buffer\",\"bytes\":%zu,\"thread\":%ld}", valid, syscall(SYS_gettid));
  while (CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS) {
    OnRecord(record);
  }
  free(buffer);
  g_lent.TakeBack();
}

// Valid for launches of kernels only.
const char* SymbolOf(const CUpti_CallbackData& data) {
  const bool launches = strstr(data.functionName, "LaunchKernel") != nullptr ||
                        strstr(data.functionName, "LaunchCooperative") != nullptr;
  return launches && data.symbolName != nullptr ? data.symbolName : "";
}

void OnApiCallback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                   const CUpti_CallbackData& data) {
  if (data.callbackSite == CUPTI_API_ENTER) {
    *data.correlationData = data.correlationId;
    return;
  }
  Line(
      "{\"type\":\"api\",\"domain\":\"%s\",\"cbid\":%u,\"name\":\"%s\",\"thread\":%ld,"
      "\"correlation\":%u,\"status\":%d,\"symbol\":\"%s\",\"carried\":%s}",
      domain == CUPTI_CB_DOMAIN_DRIVER_API ? "driver" : "runtime", cbid, data.functionName,
      syscall(SYS_gettid), data.correlationId, *static_cast<int*>(data.functionReturnValue),
      SymbolOf(data), *data.correlationData == data.correlationId ? "true" : "false");
}

void OnResourceCallback(CUpti_CallbackId cbid, const CUpti_ResourceData& data) {
  uint32_t context = 0, stream = 0;
  if (data.context != nullptr) CUPTI(cuptiGetContextId)(data.context, &context);
  bool of_stream = cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED ||
                   cbid == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
  if (of_stream) {
    CUPTI(cuptiGetStreamIdEx)(data.context, data.resourceHandle.stream, 0, &stream);
  }
  Line("{\"type\":\"resource\",\"change\":%u,\"context\":%u,\"stream\":%u}", cbid, context, stream);
}

void OnCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    OnResourceCallback(cbid, *static_cast<const CUpti_ResourceData*>(data));
  } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    OnApiCallback(domain, cbid, *static_cast<const CUpti_CallbackData*>(data));
  }
}

void AtExit() {
  CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  g_lent.AwaitAll();
  size_t dropped = 0;
  CUPTI(cuptiActivityGetNumDroppedRecords)(nullptr, 0, &dropped);
  Line("{\"type\":\"end\",\"dropped\":%zu}", dropped);
  fflush(g_out);
}

void* FlushNowAndThen(void*) {
  for (;;) {
    usleep(static_cast<useconds_t>(Number("PROBE_FLUSH", 0) * 1000));
    CUPTI(cuptiActivityFlushAll)(0);
    std::lock_guard lock(g_out_mutex);
    fflush(g_out);
  }
}

void EnableKinds() {
  const char* kinds = getenv("PROBE_KINDS");
  std::string text = kinds == nullptr ? "" : kinds;
  for (char* kind = strtok(text.data(), ","); kind != nullptr; kind = strtok(nullptr, ",")) {
    CUptiResult result = CUPTI(cuptiActivityEnable)(static_cast<CUpti_ActivityKind>(atoi(kind)));
    if (result != CUPTI_SUCCESS) Line("{\"type\":\"enable_failed\",\"status\":%d}", result);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* folder = getenv("PROBE_OUT");
  if (folder == nullptr) return 0;
  std::string path = std::string(folder) + "/probe." + std::to_string(getpid()) + ".jsonl";
  g_out = fopen(path.c_str(), "we");
  if (g_out == nullptr) return 0;
  CUptiResult result = CUPTI(cuptiSubscribe)(&g_subscriber, OnCallback, nullptr);
  Line("{\"type\":\"subscribe\",\"status\":%d}", result);
  if (result != CUPTI_SUCCESS) {
    fflush(g_out);
    return 1;
  }
  CUPTI(cuptiSetThreadIdType)(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  CUPTI(cuptiActivityRegisterCallbacks)(OnBufferRequested, OnBufferCompleted);
  CUPTI(cuptiActivityEnableCudaEventDeviceTimestamps)(1);
  uint64_t apis = Number("PROBE_APIS", 0);
  if (apis >= 1) {
    CUPTI(cuptiEnableDomain)(1, g_subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    CUPTI(cuptiEnableDomain)(1, g_subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  }
  if (apis >= 2) CUPTI(cuptiEnableDomain)(1, g_subscriber, CUPTI_CB_DOMAIN_RESOURCE);
  EnableKinds();
  if (Number("PROBE_FLUSH", 0) != 0) {
    pthread_t thread;
    pthread_create(&thread, nullptr, FlushNowAndThen, nullptr);
  }
  atexit(AtExit);
  return 1;
}
