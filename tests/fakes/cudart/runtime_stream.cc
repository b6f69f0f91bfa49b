// Streams, events, capture.
#include "runtime_api.gen.h"
#include "tests/fakes/cudart/runtime_call.h"

using namespace ranktap::standin;

// Every function here is the driver's under another name, with a context made first.
#define FORWARD(call)                  \
  cudaError_t ready = EnsureContext(); \
  return ready != cudaSuccess ? ready : ToRuntime(TheDriver().call)

extern "C" {

cudaError_t sim_cudaStreamCreate(cudaStream_t* stream) { FORWARD(cuStreamCreate(stream, 0)); }

cudaError_t sim_cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  FORWARD(cuStreamCreate(stream, flags));
}

cudaError_t sim_cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags,
                                             int priority) {
  FORWARD(cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t sim_cudaStreamDestroy(cudaStream_t stream) { FORWARD(cuStreamDestroy_v2(stream)); }

cudaError_t sim_cudaStreamSynchronize(cudaStream_t stream) { FORWARD(cuStreamSynchronize(stream)); }

cudaError_t sim_cudaStreamQuery(cudaStream_t stream) { FORWARD(cuStreamQuery(stream)); }

cudaError_t sim_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  FORWARD(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t sim_cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  FORWARD(cuStreamGetPriority(stream, priority));
}

cudaError_t sim_cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  FORWARD(cuStreamGetFlags(stream, flags));
}

cudaError_t sim_cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  FORWARD(cuStreamGetId(stream, id));
}

cudaError_t sim_cudaStreamGetDevice(cudaStream_t stream, int* device) {
  FORWARD(cuStreamGetDevice(stream, device));
}

cudaError_t sim_cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                      void* argument, unsigned int flags) {
  // The two callback types differ in their status enumeration, whose numbers agree.
  FORWARD(
      cuStreamAddCallback(stream, reinterpret_cast<CUstreamCallback>(callback), argument, flags));
}

cudaError_t sim_cudaEventCreate(cudaEvent_t* event) { FORWARD(cuEventCreate(event, 0)); }

cudaError_t sim_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  FORWARD(cuEventCreate(event, flags));
}

cudaError_t sim_cudaEventDestroy(cudaEvent_t event) { FORWARD(cuEventDestroy_v2(event)); }

cudaError_t sim_cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FORWARD(cuEventRecord(event, stream));
}

cudaError_t sim_cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                         unsigned int flags) {
  FORWARD(cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t sim_cudaEventSynchronize(cudaEvent_t event) { FORWARD(cuEventSynchronize(event)); }

cudaError_t sim_cudaEventQuery(cudaEvent_t event) { FORWARD(cuEventQuery(event)); }

cudaError_t sim_cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  FORWARD(cuEventElapsedTime_v2(milliseconds, start, end));
}

cudaError_t sim_cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  FORWARD(cuStreamBeginCapture_v2(stream, static_cast<CUstreamCaptureMode>(mode)));
}

cudaError_t sim_cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                              const cudaGraphNode_t* dependencies,
                                              const cudaGraphEdgeData* edges, size_t count,
                                              cudaStreamCaptureMode mode) {
  if (edges != nullptr) return cudaErrorNotSupported;
  FORWARD(cuStreamBeginCaptureToGraph(stream, graph, dependencies, nullptr, count,
                                      static_cast<CUstreamCaptureMode>(mode)));
}

cudaError_t sim_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  FORWARD(cuStreamEndCapture(stream, graph));
}

cudaError_t sim_cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  FORWARD(cuStreamIsCapturing(stream, reinterpret_cast<CUstreamCaptureStatus*>(status)));
}

cudaError_t sim_cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                         unsigned long long* id, cudaGraph_t* graph,
                                         const cudaGraphNode_t** dependencies,
                                         const cudaGraphEdgeData** edges, size_t* count) {
  cuuint64_t capture = 0;
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  RETURN_IF_ERROR(TheDriver().cuStreamGetCaptureInfo_v3(
      stream, reinterpret_cast<CUstreamCaptureStatus*>(status), &capture, graph, dependencies,
      reinterpret_cast<const CUgraphEdgeData**>(edges), count));
  if (id != nullptr) *id = capture;
  return cudaSuccess;
}

cudaError_t sim_cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  FORWARD(cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)));
}

}  // extern "C"
