// Devices and contexts.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <iterator>
#include <mutex>

#include "driver_api.gen.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/device.h"
#include "tests/fakes/machine/memory.h"
#include "tests/fakes/machine/schedule.h"

using namespace ranktap::standin;

namespace {

bool IsDevice(CUdevice device) {
  return device >= 0 && static_cast<uint32_t>(device) < DeviceCount();
}

CUcontext Handle(Context* context) { return reinterpret_cast<CUcontext>(context); }

CUresult Push(Context* context) {
  ThreadState& thread = CurrentThread();
  if (thread.context_count == static_cast<int>(std::size(thread.contexts))) {
    return CUDA_ERROR_UNKNOWN;
  }
  thread.contexts[thread.context_count++] = context;
  return CUDA_SUCCESS;
}

CUresult CreateAndPush(CUcontext* handle, unsigned flags, CUdevice device) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = CreateContext(static_cast<uint32_t>(device), flags, false);
  AnnounceContext(*context);
  *handle = Handle(context);
  return Push(context);
}

void Retire(Context* context) {
  uint64_t tail;
  {
    std::lock_guard lock(MachineLock());
    tail = ContextTail(*context);
  }
  HostWait(tail);
  DestroyContext(context);
  ReleaseContextMemory(context->id);
  ThreadState& thread = CurrentThread();
  while (thread.context_count > 0 && thread.current() == context) --thread.context_count;
}

}  // namespace

extern "C" {

CUresult sim_cuDeviceGet(CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(DeviceCount());
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char* name, int len, CUdevice dev) {
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  strncpy(name, DeviceName(static_cast<uint32_t>(dev)), static_cast<size_t>(len));
  name[len - 1] = 0;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = FactsOf(static_cast<uint32_t>(dev)).uuid;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  return sim_cuDeviceGetUuid_v2(uuid, dev);
}

CUresult sim_cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = DeviceMemoryBytes();
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice dev) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  return DeviceAttribute(attribute, static_cast<uint32_t>(dev), value) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuDeviceGetPCIBusId(char* text, int len, CUdevice dev) {
  int bus = 0;
  if (text == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  DeviceAttribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, static_cast<uint32_t>(dev), &bus);
  snprintf(text, static_cast<size_t>(len), "0000:%02X:00.0", static_cast<unsigned>(bus));
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i < DeviceCount(); ++i) {
    char name[32];
    sim_cuDeviceGetPCIBusId(name, sizeof name, static_cast<CUdevice>(i));
    if (strcasecmp(name, text) != 0) continue;
    *device = static_cast<CUdevice>(i);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuDeviceCanAccessPeer(int* can, CUdevice dev, CUdevice peer) {
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev) || !IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = dev != peer;
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice dev) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  // Two threads may come here at once; a process has one primary context per device.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  Context* context = PrimaryContext(static_cast<uint32_t>(dev));
  bool made = context == nullptr;
  if (made) {
    context = CreateContext(static_cast<uint32_t>(dev), 0, true);
    SetPrimaryContext(static_cast<uint32_t>(dev), context);
  }
  ++context->references;
  *handle = Handle(context);
  if (made) AnnounceContext(*context);
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = PrimaryContext(static_cast<uint32_t>(dev));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (--context->references == 0) Retire(context);
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  if (Context* context = PrimaryContext(static_cast<uint32_t>(dev))) Retire(context);
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  const Context* context = PrimaryContext(static_cast<uint32_t>(dev));
  *flags = context == nullptr ? 0 : context->flags;
  *active = context != nullptr;
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  if (Context* context = PrimaryContext(static_cast<uint32_t>(dev))) context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return CreateAndPush(pctx, flags, dev);
}

CUresult sim_cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* params, unsigned int flags,
                            CUdevice dev) {
  if (params != nullptr &&
      (params->execAffinityParams != nullptr || params->cigParams != nullptr)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CreateAndPush(pctx, flags, dev);
}

CUresult sim_cuCtxDestroy_v2(CUcontext handle) {
  Context* context = AsContext(handle);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  Retire(context);
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext handle) {
  Context* context = AsContext(handle);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : Push(context);
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext* handle) {
  ThreadState& thread = CurrentThread();
  if (thread.context_count == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle != nullptr) *handle = Handle(thread.current());
  --thread.context_count;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext handle) {
  ThreadState& thread = CurrentThread();
  Context* context = AsContext(handle);
  if (context == nullptr && handle != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (thread.context_count > 0) --thread.context_count;
  return context == nullptr ? CUDA_SUCCESS : Push(context);
}

CUresult sim_cuCtxGetCurrent(CUcontext* handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = Handle(CurrentThread().current());
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* context = CurrentThread().current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = static_cast<CUdevice>(context->device);
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetId(CUcontext handle, unsigned long long* id) {
  const Context* context = handle == nullptr ? CurrentThread().current() : AsContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetFlags(unsigned int* flags) {
  const Context* context = CurrentThread().current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetApiVersion(CUcontext, unsigned int* version) {
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSynchronize() {
  Context* context = CurrentThread().current();
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : SynchronizeContext(context);
}

CUresult sim_cuCtxEnablePeerAccess(CUcontext peer, unsigned int) {
  return AsContext(peer) == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peer) {
  return AsContext(peer) == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult sim_cuCtxSetLimit(CUlimit, size_t) { return CUDA_SUCCESS; }
CUresult sim_cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }

}  // extern "C"
