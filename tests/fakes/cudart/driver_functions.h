// The driver as the runtime calls it: through libcuda's exported entries, so that a tool sees the
// nested driver calls a real runtime makes.
#pragma once

#include <cuda.h>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

// The runtime entry now running is a _ptsz/_ptds one: driver calls go to their namesakes.
extern thread_local bool t_per_thread_default;

template <typename Function>
struct DriverFunction;

template <typename... Arguments>
struct DriverFunction<CUresult(Arguments...)> {
  CUresult (*legacy)(Arguments...) = nullptr;
  CUresult (*per_thread)(Arguments...) = nullptr;

  CUresult operator()(Arguments... arguments) const {
    bool other = t_per_thread_default && per_thread != nullptr;
    return (other ? per_thread : legacy)(arguments...);
  }
};

// Every driver function the runtime uses.
// clang-format off
#define STANDIN_DRIVER_FUNCTIONS(X) \
  X(cuDeviceGetAttribute) X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceTotalMem_v2) \
  X(cuDeviceGetPCIBusId) X(cuDeviceGetByPCIBusId) X(cuDeviceCanAccessPeer) \
  X(cuDeviceGetDefaultMemPool) X(cuDeviceGetMemPool) X(cuDevicePrimaryCtxRetain) \
  X(cuDevicePrimaryCtxReset_v2) X(cuDeviceGetUuid) X(cuCtxSetCurrent) X(cuCtxGetCurrent) \
  X(cuCtxSynchronize) X(cuCtxGetStreamPriorityRange) X(cuCtxEnablePeerAccess) \
  X(cuCtxDisablePeerAccess) X(cuDriverGetVersion) X(cuGetProcAddress_v2) X(cuMemAlloc_v2) \
  X(cuMemAllocPitch_v2) X(cuMemFree_v2) X(cuMemAllocManaged) X(cuMemHostAlloc) X(cuMemFreeHost) \
  X(cuMemHostRegister_v2) X(cuMemHostUnregister) X(cuMemHostGetDevicePointer_v2) \
  X(cuMemHostGetFlags) X(cuMemGetInfo_v2) X(cuPointerGetAttribute) X(cuMemAllocAsync) \
  X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync) X(cuMemPoolSetAttribute) X(cuMemPoolTrimTo) \
  X(cuMemcpy) X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoD_v2) X(cuMemcpyPeer) \
  X(cuMemcpyAsync) X(cuMemcpyHtoDAsync_v2) X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoDAsync_v2) \
  X(cuMemcpyPeerAsync) X(cuMemcpy2DUnaligned_v2) X(cuMemcpy2DAsync_v2) X(cuMemcpy3D_v2) \
  X(cuMemcpy3DAsync_v2) X(cuMemsetD8_v2) X(cuMemsetD8Async) X(cuMemsetD2D8_v2) \
  X(cuMemsetD2D8Async) X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy_v2) \
  X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent) X(cuStreamGetPriority) \
  X(cuStreamGetFlags) X(cuStreamGetId) X(cuStreamGetDevice) X(cuStreamAddCallback) \
  X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuStreamBeginCaptureToGraph) \
  X(cuStreamIsCapturing) X(cuStreamGetCaptureInfo_v3) X(cuThreadExchangeStreamCaptureMode) \
  X(cuLaunchHostFunc) X(cuEventCreate) X(cuEventDestroy_v2) X(cuEventRecord) \
  X(cuEventRecordWithFlags) X(cuEventSynchronize) X(cuEventQuery) X(cuEventElapsedTime_v2) \
  X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLaunchCooperativeKernel) X(cuLibraryLoadData) \
  X(cuLibraryUnload) X(cuLibraryGetKernel) X(cuLibraryGetGlobal) X(cuKernelGetFunction) \
  X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuFuncSetCacheConfig) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) X(cuGraphCreate) X(cuGraphDestroy) \
  X(cuGraphClone) X(cuGraphAddKernelNode_v2) X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) \
  X(cuGraphAddHostNode) X(cuGraphAddEmptyNode) X(cuGraphAddChildGraphNode) \
  X(cuGraphAddEventRecordNode) X(cuGraphAddEventWaitNode) X(cuGraphAddDependencies_v2) \
  X(cuGraphGetNodes) X(cuGraphGetRootNodes) X(cuGraphGetEdges_v2) X(cuGraphNodeGetType) \
  X(cuGraphNodeGetDependencies_v2) X(cuGraphDestroyNode) X(cuGraphInstantiateWithFlags) \
  X(cuGraphExecDestroy) X(cuGraphLaunch) X(cuGraphUpload) X(cuGraphExecUpdate_v2) \
  X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphKernelNodeSetParams_v2) \
  X(cuGraphNodeSetEnabled) X(cuGraphNodeGetEnabled) X(cuGraphExecGetFlags) \
  X(cuGraphChildGraphNodeGetGraph)
// clang-format on

struct Driver {
#define STANDIN_MEMBER(name) DriverFunction<decltype(::name)> name;
  STANDIN_DRIVER_FUNCTIONS(STANDIN_MEMBER)
#undef STANDIN_MEMBER
  const MachineLink* machine = nullptr;
};

// Null when there is no libcuda.so.1 that is the stand-in's.
const Driver* FindDriver();
// Only within a call that RuntimeCall has admitted.
const Driver& TheDriver();

}  // namespace ranktap::standin
