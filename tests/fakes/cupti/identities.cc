// Versions, clocks, ids and the end.
#include <time.h>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/client_clock.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/result_names.h"
#include "tests/fakes/cupti/second_subscriber.h"
#include "tests/fakes/cupti/subscription.h"

using namespace ranktap::standin;

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const bool is_up = TheSubscription().callback.load() != nullptr || SecondSubscribers() != 0;
  if (!is_up && Machine() != nullptr && Script().late_version) return CUPTI_ERROR_UNKNOWN;
  *version = Script().version;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (Machine() != nullptr) RETURN_UNLESS(AdmitFirstApi);
  if (ReadClientClock(timestamp)) return CUPTI_SUCCESS;
  if (Machine() != nullptr) {
    *timestamp = Machine()->device_clock_ns();
    return CUPTI_SUCCESS;
  }
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *timestamp =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetLastError() {
  CUptiResult error = LastCuptiError();
  LastCuptiError() = CUPTI_SUCCESS;
  return error;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = ResultName(result);
  return *text == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return cuptiGetResultString(result, text);
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t* id) {
  RETURN_UNLESS_ADMITTED();
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = Machine()->context_id(context);
  return *id == 0 ? CUPTI_ERROR_INVALID_CONTEXT : CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t* id) {
  RETURN_UNLESS_ADMITTED();
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  Resource facts;
  CUcontext wanted = context == nullptr ? Machine()->current_context() : context;
  if (!Machine()->context_facts(wanted, &facts)) return CUPTI_ERROR_INVALID_CONTEXT;
  *id = facts.device;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                               uint32_t* id) {
  RETURN_UNLESS_ADMITTED();
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  bool found = Machine()->stream_id(context, stream, per_thread != 0, id);
  return found ? CUPTI_SUCCESS : LastCuptiError() = CUPTI_ERROR_INVALID_STREAM;
}

CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* id) {
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  RETURN_UNLESS_ADMITTED();
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = Machine()->graph_id(graph);
  return *id == 0 ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t* id) {
  RETURN_UNLESS_ADMITTED();
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = Machine()->graph_exec_id(exec);
  return *id == 0 ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  RETURN_UNLESS_ADMITTED();
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = Machine()->graph_node_id(node);
  return *id == 0 ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceSupported(CUdevice device, int* support) {
  RETURN_UNLESS_ADMITTED();
  if (device < 0 || static_cast<uint32_t>(device) >= Machine()->device_count()) {
    return CUPTI_ERROR_INVALID_DEVICE;
  }
  *support = 1;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceVirtualizationMode(CUdevice, CUpti_DeviceVirtualizationMode* mode) {
  RETURN_UNLESS_ADMITTED();
  *mode = CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiComputeCapabilitySupported(int major, int, int* support) {
  if (support == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *support = major >= 8 ? 2 : 0;
  return CUPTI_SUCCESS;
}

// Everything off, as if CUPTI had never been used. A client has no business calling this.
CUptiResult cuptiFinalize() {
  if (Machine() == nullptr) return CUPTI_SUCCESS;
  RETURN_UNLESS_ADMITTED();
  Machine()->note_violation("cuptiFinalize called");
  if (!ForgetSecondSubscribers()) return CUPTI_SUCCESS;
  ForgetSession();
  Machine()->set_hooks(nullptr);
  return CUPTI_SUCCESS;
}

}  // extern "C"
