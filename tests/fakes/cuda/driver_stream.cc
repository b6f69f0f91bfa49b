// Streams, events and capture.
#include "driver_api.gen.h"
#include "tests/fakes/machine/announce.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/clock.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/graph.h"
#include "tests/fakes/machine/make_work.h"
#include "tests/fakes/machine/schedule.h"

using namespace ranktap::standin;

namespace {

constexpr int kHighestPriority = -5;

CUstream Handle(Stream* stream) { return reinterpret_cast<CUstream>(stream); }

CUresult Create(CUstream* handle, unsigned flags, int priority) {
  if (handle == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context = CurrentThread().current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  priority = priority > 0 ? 0 : priority < kHighestPriority ? kHighestPriority : priority;
  Stream* stream = CreateStream(context, flags, priority);
  *handle = Handle(stream);
  Announce(DescribeStream(*stream, ResourceChange::kStreamCreated));
  return CUDA_SUCCESS;
}

struct StreamCallback {
  CUstreamCallback function;
  CUstream stream;
  void* argument;
};

}  // namespace

extern "C" {

CUresult sim_cuStreamCreate(CUstream* stream, unsigned int flags) {
  return Create(stream, flags, 0);
}

CUresult sim_cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return Create(stream, flags, priority);
}

CUresult sim_cuStreamDestroy_v2(CUstream handle) {
  Stream* stream = AsStream(handle);
  if (handle == nullptr || stream == nullptr || stream->is_legacy()) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Announce(DescribeStream(*stream, ResourceChange::kStreamDestroyStarting));
  std::lock_guard lock(MachineLock());
  stream->alive = false;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamSynchronize(CUstream handle) {
  Stream* stream = AsStream(handle);
  return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : SynchronizeStream(stream);
}

CUresult sim_cuStreamQuery(CUstream handle) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard lock(MachineLock());
  if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return ReachedByNow(ReadyAt(*stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult sim_cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int) {
  Stream* stream = AsStream(handle);
  Event* event = AsEvent(event_handle);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return WaitEvent(stream, event);
}

CUresult sim_cuStreamGetPriority(CUstream handle, int* priority) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetId(CUstream handle, unsigned long long* id) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetDevice(CUstream handle, CUdevice* device) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *device = static_cast<CUdevice>(stream->context->device);
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCtx(CUstream handle, CUcontext* context) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *context = reinterpret_cast<CUcontext>(stream->context);
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return sim_cuStreamGetCtx(handle, context);
}

CUresult sim_cuLaunchHostFunc(CUstream handle, CUhostFn function, void* argument) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Submit(stream, HostFunctionWork(function, argument));
}

CUresult sim_cuStreamAddCallback(CUstream handle, CUstreamCallback function, void* argument,
                                 unsigned int) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto* call = new StreamCallback{function, handle, argument};
  return Submit(stream, HostFunctionWork(
                            [](void* packed) {
                              auto* call = static_cast<StreamCallback*>(packed);
                              call->function(call->stream, CUDA_SUCCESS, call->argument);
                              delete call;
                            },
                            call));
}

CUresult sim_cuEventCreate(CUevent* handle, unsigned int flags) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = CurrentThread().current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *handle = reinterpret_cast<CUevent>(CreateEvent(context, flags));
  return CUDA_SUCCESS;
}

CUresult sim_cuEventDestroy_v2(CUevent handle) {
  Event* event = AsEvent(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event->alive = false;
  return CUDA_SUCCESS;
}

CUresult sim_cuEventRecord(CUevent event_handle, CUstream handle) {
  Stream* stream = AsStream(handle);
  Event* event = AsEvent(event_handle);
  if (stream == nullptr || event == nullptr || event->context != stream->context) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return RecordEvent(stream, event);
}

CUresult sim_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int) {
  return sim_cuEventRecord(event, stream);
}

CUresult sim_cuEventSynchronize(CUevent handle) {
  Event* event = AsEvent(handle);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : SynchronizeEvent(event);
}

CUresult sim_cuEventQuery(CUevent handle) {
  Event* event = AsEvent(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard lock(MachineLock());
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  return !event->recorded || ReachedByNow(event->time_ns) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult sim_cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  const Event* first = AsEvent(start);
  const Event* last = AsEvent(end);
  if (first == nullptr || last == nullptr || milliseconds == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  std::lock_guard lock(MachineLock());
  bool timed = ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) == 0;
  if (!timed || !first->recorded || !last->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (!ReachedByNow(first->time_ns) || !ReachedByNow(last->time_ns)) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(
      static_cast<double>(static_cast<int64_t>(last->time_ns - first->time_ns)) / 1e6);
  return CUDA_SUCCESS;
}

CUresult sim_cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return sim_cuEventElapsedTime_v2(milliseconds, start, end);
}

CUresult sim_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  Stream* stream = AsStream(handle);
  return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : BeginCapture(stream, mode, nullptr);
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode*,
                                         const CUgraphEdgeData*, size_t dependencies,
                                         CUstreamCaptureMode mode) {
  Stream* stream = AsStream(handle);
  Graph* into = AsGraph(graph);
  if (stream == nullptr || into == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (dependencies != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return BeginCapture(stream, mode, into);
}

CUresult sim_cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Graph* captured;
  CUresult result = EndCapture(stream, &captured);
  *graph = Handle(captured);
  return result;
}

CUresult sim_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr || status == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard lock(MachineLock());
  *status = stream->capture == nullptr     ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                       cuuint64_t* id, CUgraph* graph,
                                       const CUgraphNode** dependencies,
                                       const CUgraphEdgeData** edges, size_t* count) {
  CUresult result = sim_cuStreamIsCapturing(handle, status);
  if (result != CUDA_SUCCESS) return result;
  Stream* stream = AsStream(handle);
  std::lock_guard lock(MachineLock());
  if (stream->capture == nullptr) return CUDA_SUCCESS;
  if (id != nullptr) *id = stream->capture->id;
  if (graph != nullptr) *graph = Handle(stream->capture->graph);
  if (dependencies != nullptr) {
    *dependencies = reinterpret_cast<const CUgraphNode*>(stream->capture_tail.data());
  }
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = stream->capture_tail.size();
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status,
                                       cuuint64_t* id, CUgraph* graph,
                                       const CUgraphNode** dependencies, size_t* count) {
  return sim_cuStreamGetCaptureInfo_v3(handle, status, id, graph, dependencies, nullptr, count);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

}  // extern "C"
