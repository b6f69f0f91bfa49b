// Memory.
#include "runtime_api.gen.h"
#include "tests/fakes/cudart/copy_direction.h"
#include "tests/fakes/cudart/runtime_call.h"

using namespace ranktap::standin;

namespace {

cudaError_t Allocate(void** pointer, size_t size,
                     CUresult (*allocate)(CUdeviceptr* address, size_t size)) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  if (size == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  CUdeviceptr address = 0;
  RETURN_IF_ERROR(allocate(&address, size));
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t sim_cudaMalloc(void** pointer, size_t size) {
  return Allocate(pointer, size, [](CUdeviceptr* address, size_t bytes) {
    return TheDriver().cuMemAlloc_v2(address, bytes);
  });
}

cudaError_t sim_cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  static thread_local unsigned managed_flags;
  managed_flags = flags;
  return Allocate(pointer, size, [](CUdeviceptr* address, size_t bytes) {
    return TheDriver().cuMemAllocManaged(address, bytes, managed_flags);
  });
}

cudaError_t sim_cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  CUdeviceptr address;
  RETURN_IF_ERROR(TheDriver().cuMemAllocPitch_v2(&address, pitch, width, height, 4));
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t sim_cudaFree(void* pointer) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess || pointer == nullptr) return ready;
  return ToRuntime(TheDriver().cuMemFree_v2(Address(pointer)));
}

cudaError_t sim_cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuMemHostAlloc(pointer, size, flags));
}

cudaError_t sim_cudaMallocHost(void** pointer, size_t size) {
  return sim_cudaHostAlloc(pointer, size, 0);
}

cudaError_t sim_cudaFreeHost(void* pointer) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess || pointer == nullptr) return ready;
  return ToRuntime(TheDriver().cuMemFreeHost(pointer));
}

cudaError_t sim_cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuMemHostRegister_v2(pointer, size, flags));
}

cudaError_t sim_cudaHostUnregister(void* pointer) {
  cudaError_t ready = EnsureContext();
  return ready != cudaSuccess ? ready : ToRuntime(TheDriver().cuMemHostUnregister(pointer));
}

cudaError_t sim_cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  CUdeviceptr address;
  RETURN_IF_ERROR(TheDriver().cuMemHostGetDevicePointer_v2(&address, host, flags));
  *device = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t sim_cudaHostGetFlags(unsigned int* flags, void* pointer) {
  return ToRuntime(TheDriver().cuMemHostGetFlags(flags, pointer));
}

cudaError_t sim_cudaMemGetInfo(size_t* free, size_t* total) {
  cudaError_t ready = EnsureContext();
  return ready != cudaSuccess ? ready : ToRuntime(TheDriver().cuMemGetInfo_v2(free, total));
}

cudaError_t sim_cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  *attributes = {};
  const Driver& driver = TheDriver();
  unsigned type = 0, managed = 0;
  CUresult known =
      driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Address(pointer));
  if (known != CUDA_SUCCESS) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -2;
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, Address(pointer));
  driver.cuPointerGetAttribute(&attributes->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                               Address(pointer));
  attributes->type = managed != 0                 ? cudaMemoryTypeManaged
                     : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeDevice;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (attributes->type != cudaMemoryTypeDevice) attributes->hostPointer = attributes->devicePointer;
  return cudaSuccess;
}

cudaError_t sim_cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  CUdeviceptr address;
  RETURN_IF_ERROR(TheDriver().cuMemAllocAsync(&address, size, stream));
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t sim_cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool,
                                        cudaStream_t stream) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  CUdeviceptr address;
  RETURN_IF_ERROR(TheDriver().cuMemAllocFromPoolAsync(&address, size, pool, stream));
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t sim_cudaFreeAsync(void* pointer, cudaStream_t stream) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuMemFreeAsync(Address(pointer), stream));
}

cudaError_t sim_cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                        void* value) {
  return ToRuntime(
      TheDriver().cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}

cudaError_t sim_cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  return ToRuntime(TheDriver().cuMemPoolTrimTo(pool, bytes));
}

}  // extern "C"
