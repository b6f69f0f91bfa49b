// Devices and their properties.
#include <string.h>

#include "runtime_api.gen.h"
#include "tests/fakes/cudart/runtime_call.h"

using namespace ranktap::standin;

namespace {

int Attribute(CUdevice_attribute attribute, int device) {
  int value = 0;
  TheDriver().cuDeviceGetAttribute(&value, attribute, device);
  return value;
}

cudaError_t CheckDevice(int device) {
  int count = static_cast<int>(TheDriver().machine->device_count());
  return device < 0 || device >= count ? cudaErrorInvalidDevice : cudaSuccess;
}

void FillLimits(cudaDeviceProp* prop, int device) {
  prop->maxThreadsPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
  prop->maxThreadsDim[0] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, device);
  prop->maxThreadsDim[1] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, device);
  prop->maxThreadsDim[2] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, device);
  prop->maxGridSize[0] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, device);
  prop->maxGridSize[1] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, device);
  prop->maxGridSize[2] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, device);
  prop->sharedMemPerBlock =
      static_cast<size_t>(Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device));
  prop->sharedMemPerBlockOptin =
      static_cast<size_t>(Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
  prop->sharedMemPerMultiprocessor = static_cast<size_t>(
      Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device));
  prop->reservedSharedMemPerBlock =
      static_cast<size_t>(Attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, device));
  prop->regsPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device);
  prop->regsPerMultiprocessor =
      Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device);
  prop->maxThreadsPerMultiProcessor =
      Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
  prop->maxBlocksPerMultiProcessor =
      Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, device);
  prop->totalConstMem =
      static_cast<size_t>(Attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device));
}

void FillAbilities(cudaDeviceProp* prop, int device) {
  prop->major = Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  prop->minor = Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  prop->multiProcessorCount = Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  prop->warpSize = Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
  prop->memPitch = static_cast<size_t>(Attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, device));
  prop->textureAlignment =
      static_cast<size_t>(Attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, device));
  prop->memoryBusWidth = Attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);
  prop->l2CacheSize = Attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  prop->asyncEngineCount = Attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, device);
  prop->concurrentKernels = Attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, device);
  prop->ECCEnabled = Attribute(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, device);
  prop->pciBusID = Attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
  prop->unifiedAddressing = Attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device);
  prop->canMapHostMemory = Attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, device);
  prop->managedMemory = Attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device);
  prop->concurrentManagedAccess = Attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device);
  prop->cooperativeLaunch = Attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, device);
  prop->streamPrioritiesSupported =
      Attribute(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, device);
  prop->memoryPoolsSupported = Attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device);
  prop->clusterLaunch = Attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device);
}

}  // namespace

extern "C" {

cudaError_t sim_cudaGetDeviceCount(int* count) {
  return ToRuntime(TheDriver().cuDeviceGetCount(count));
}

cudaError_t sim_cudaGetDevice(int* device) {
  if (device == nullptr) return cudaErrorInvalidValue;
  *device = CurrentDevice();
  return cudaSuccess;
}

// As since CUDA 12: the device is initialised here, not at its first use.
cudaError_t sim_cudaSetDevice(int device) {
  cudaError_t known = CheckDevice(device);
  if (known != cudaSuccess) return known;
  CurrentDevice() = device;
  CUcontext context;
  RETURN_IF_ERROR(TheDriver().cuDevicePrimaryCtxRetain(&context, device));
  return ToRuntime(TheDriver().cuCtxSetCurrent(context));
}

cudaError_t sim_cudaInitDevice(int device, unsigned int, unsigned int) {
  CUcontext context;
  return ToRuntime(TheDriver().cuDevicePrimaryCtxRetain(&context, device));
}

cudaError_t sim_cudaSetDeviceFlags(unsigned int) { return cudaSuccess; }

cudaError_t sim_cudaGetDeviceFlags(unsigned int* flags) {
  *flags = 0;
  return cudaSuccess;
}

cudaError_t sim_cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  // The runtime's numbers are the driver's.
  return ToRuntime(
      TheDriver().cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device));
}

cudaError_t sim_cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  if (prop == nullptr) return cudaErrorInvalidValue;
  cudaError_t known = CheckDevice(device);
  if (known != cudaSuccess) return known;
  *prop = {};
  TheDriver().cuDeviceGetName(prop->name, sizeof prop->name, device);
  TheDriver().cuDeviceTotalMem_v2(&prop->totalGlobalMem, device);
  CUuuid uuid;
  TheDriver().cuDeviceGetUuid(&uuid, device);
  memcpy(&prop->uuid, &uuid, sizeof prop->uuid);
  FillLimits(prop, device);
  FillAbilities(prop, device);
  return cudaSuccess;
}

cudaError_t sim_cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return ToRuntime(TheDriver().cuDeviceGetPCIBusId(text, length, device));
}

cudaError_t sim_cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return ToRuntime(TheDriver().cuDeviceGetByPCIBusId(device, text));
}

cudaError_t sim_cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return ToRuntime(TheDriver().cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t sim_cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  CUcontext context;
  RETURN_IF_ERROR(TheDriver().cuDevicePrimaryCtxRetain(&context, peer));
  return ToRuntime(TheDriver().cuCtxEnablePeerAccess(context, flags));
}

cudaError_t sim_cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return ToRuntime(TheDriver().cuCtxGetStreamPriorityRange(least, greatest));
}

cudaError_t sim_cudaDeviceSynchronize() {
  cudaError_t ready = EnsureContext();
  return ready != cudaSuccess ? ready : ToRuntime(TheDriver().cuCtxSynchronize());
}

cudaError_t sim_cudaDeviceReset() {
  return ToRuntime(TheDriver().cuDevicePrimaryCtxReset_v2(CurrentDevice()));
}

cudaError_t sim_cudaDriverGetVersion(int* version) {
  return ToRuntime(TheDriver().cuDriverGetVersion(version));
}

cudaError_t sim_cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t sim_cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                 unsigned int version, unsigned long long flags,
                                                 cudaDriverEntryPointQueryResult* status) {
  CUdriverProcAddressQueryResult found;
  RETURN_IF_ERROR(
      TheDriver().cuGetProcAddress_v2(symbol, function, static_cast<int>(version), flags, &found));
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return cudaSuccess;
}

cudaError_t sim_cudaGetDriverEntryPoint(const char* symbol, void** function,
                                        unsigned long long flags,
                                        cudaDriverEntryPointQueryResult* status) {
  return sim_cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

cudaError_t sim_cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return ToRuntime(TheDriver().cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t sim_cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return ToRuntime(TheDriver().cuDeviceGetMemPool(pool, device));
}

cudaError_t sim_cudaDeviceSetLimit(cudaLimit, size_t) { return EnsureContext(); }

}  // extern "C"
