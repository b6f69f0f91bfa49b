// Copies and memsets.
#include "runtime_api.gen.h"
#include "tests/fakes/cudart/copy_direction.h"
#include "tests/fakes/cudart/registry.h"
#include "tests/fakes/cudart/runtime_call.h"

using namespace ranktap::standin;

namespace ranktap::standin {
namespace {

bool OnDevice(const void* pointer) {
  // Untraced in a real runtime too: it knows its allocations by itself. Ours asks the driver.
  unsigned type = 0;
  const Driver& driver = TheDriver();
  CUresult result =
      driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Address(pointer));
  return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
}

}  // namespace

cudaMemcpyKind Direction(cudaMemcpyKind kind, const void* target, const void* source) {
  if (kind != cudaMemcpyDefault) return kind;
  bool to_device = OnDevice(target), from_device = OnDevice(source);
  if (to_device) return from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

bool BoxOf(const cudaMemcpy3DParms& params, CUDA_MEMCPY3D* box) {
  if (params.srcArray != nullptr || params.dstArray != nullptr) return false;
  *box = {};
  // Unified: the addresses tell, as everywhere in the stand-in.
  box->srcMemoryType = box->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  box->srcDevice = Address(params.srcPtr.ptr);
  box->srcPitch = params.srcPtr.pitch;
  box->srcHeight = params.srcPtr.ysize;
  box->srcXInBytes = params.srcPos.x;
  box->srcY = params.srcPos.y;
  box->srcZ = params.srcPos.z;
  box->dstDevice = Address(params.dstPtr.ptr);
  box->dstPitch = params.dstPtr.pitch;
  box->dstHeight = params.dstPtr.ysize;
  box->dstXInBytes = params.dstPos.x;
  box->dstY = params.dstPos.y;
  box->dstZ = params.dstPos.z;
  box->WidthInBytes = params.extent.width;
  box->Height = params.extent.height;
  box->Depth = params.extent.depth;
  return true;
}

}  // namespace ranktap::standin

namespace {

CUDA_MEMCPY2D PlaneOf(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                      size_t height) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = Address(src);
  copy.srcPitch = spitch;
  copy.dstDevice = Address(dst);
  copy.dstPitch = dpitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

// The context of a device, made if need be: what the peer copies name.
cudaError_t ContextOf(int device, CUcontext* context) {
  return ToRuntime(TheDriver().cuDevicePrimaryCtxRetain(context, device));
}

}  // namespace

extern "C" {

cudaError_t sim_cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  const Driver& driver = TheDriver();
  switch (Direction(kind, dst, src)) {
    case cudaMemcpyHostToDevice:
      return ToRuntime(driver.cuMemcpyHtoD_v2(Address(dst), src, count));
    case cudaMemcpyDeviceToHost:
      return ToRuntime(driver.cuMemcpyDtoH_v2(dst, Address(src), count));
    case cudaMemcpyDeviceToDevice:
      return ToRuntime(driver.cuMemcpyDtoD_v2(Address(dst), Address(src), count));
    case cudaMemcpyHostToHost:
      return ToRuntime(driver.cuMemcpy(Address(dst), Address(src), count));
    default:
      return cudaErrorInvalidMemcpyDirection;
  }
}

cudaError_t sim_cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                                cudaStream_t stream) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  const Driver& driver = TheDriver();
  switch (Direction(kind, dst, src)) {
    case cudaMemcpyHostToDevice:
      return ToRuntime(driver.cuMemcpyHtoDAsync_v2(Address(dst), src, count, stream));
    case cudaMemcpyDeviceToHost:
      return ToRuntime(driver.cuMemcpyDtoHAsync_v2(dst, Address(src), count, stream));
    case cudaMemcpyDeviceToDevice:
      return ToRuntime(driver.cuMemcpyDtoDAsync_v2(Address(dst), Address(src), count, stream));
    case cudaMemcpyHostToHost:
      return ToRuntime(driver.cuMemcpyAsync(Address(dst), Address(src), count, stream));
    default:
      return cudaErrorInvalidMemcpyDirection;
  }
}

cudaError_t sim_cudaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device,
                               size_t count) {
  CUcontext to, from;
  cudaError_t ready = EnsureContext();
  if (ready == cudaSuccess) ready = ContextOf(dst_device, &to);
  if (ready == cudaSuccess) ready = ContextOf(src_device, &from);
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuMemcpyPeer(Address(dst), to, Address(src), from, count));
}

cudaError_t sim_cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                    size_t count, cudaStream_t stream) {
  CUcontext to, from;
  cudaError_t ready = EnsureContext();
  if (ready == cudaSuccess) ready = ContextOf(dst_device, &to);
  if (ready == cudaSuccess) ready = ContextOf(src_device, &from);
  if (ready != cudaSuccess) return ready;
  return ToRuntime(
      TheDriver().cuMemcpyPeerAsync(Address(dst), to, Address(src), from, count, stream));
}

cudaError_t sim_cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                             size_t height, cudaMemcpyKind) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  CUDA_MEMCPY2D copy = PlaneOf(dst, dpitch, src, spitch, width, height);
  return ToRuntime(TheDriver().cuMemcpy2DUnaligned_v2(&copy));
}

cudaError_t sim_cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                                  size_t width, size_t height, cudaMemcpyKind,
                                  cudaStream_t stream) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  CUDA_MEMCPY2D copy = PlaneOf(dst, dpitch, src, spitch, width, height);
  return ToRuntime(TheDriver().cuMemcpy2DAsync_v2(&copy, stream));
}

cudaError_t sim_cudaMemcpy3D(const cudaMemcpy3DParms* params) {
  CUDA_MEMCPY3D box;
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  if (params == nullptr) return cudaErrorInvalidValue;
  if (!BoxOf(*params, &box)) return cudaErrorNotSupported;
  return ToRuntime(TheDriver().cuMemcpy3D_v2(&box));
}

cudaError_t sim_cudaMemcpy3DAsync(const cudaMemcpy3DParms* params, cudaStream_t stream) {
  CUDA_MEMCPY3D box;
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  if (params == nullptr) return cudaErrorInvalidValue;
  if (!BoxOf(*params, &box)) return cudaErrorNotSupported;
  return ToRuntime(TheDriver().cuMemcpy3DAsync_v2(&box, stream));
}

cudaError_t sim_cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count,
                                        size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  CUdeviceptr address;
  size_t bytes;
  cudaError_t found = EnsureContext();
  if (found == cudaSuccess) found = FindSymbol(symbol, &address, &bytes);
  if (found != cudaSuccess) return found;
  if (offset + count > bytes) return cudaErrorInvalidValue;
  return sim_cudaMemcpyAsync(reinterpret_cast<void*>(address + offset), src, count, kind, stream);
}

cudaError_t sim_cudaMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                                   cudaMemcpyKind kind) {
  CUdeviceptr address;
  size_t bytes;
  cudaError_t found = EnsureContext();
  if (found == cudaSuccess) found = FindSymbol(symbol, &address, &bytes);
  if (found != cudaSuccess) return found;
  if (offset + count > bytes) return cudaErrorInvalidValue;
  return sim_cudaMemcpy(reinterpret_cast<void*>(address + offset), src, count, kind);
}

cudaError_t sim_cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset,
                                     cudaMemcpyKind kind) {
  CUdeviceptr address;
  size_t bytes;
  cudaError_t found = EnsureContext();
  if (found == cudaSuccess) found = FindSymbol(symbol, &address, &bytes);
  if (found != cudaSuccess) return found;
  if (offset + count > bytes) return cudaErrorInvalidValue;
  return sim_cudaMemcpy(dst, reinterpret_cast<void*>(address + offset), count, kind);
}

cudaError_t sim_cudaGetSymbolAddress(void** pointer, const void* symbol) {
  CUdeviceptr address;
  size_t bytes;
  cudaError_t found = EnsureContext();
  if (found == cudaSuccess) found = FindSymbol(symbol, &address, &bytes);
  if (found != cudaSuccess) return found;
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t sim_cudaGetSymbolSize(size_t* size, const void* symbol) {
  CUdeviceptr address;
  cudaError_t ready = EnsureContext();
  return ready == cudaSuccess ? FindSymbol(symbol, &address, size) : ready;
}

cudaError_t sim_cudaMemset(void* pointer, int value, size_t count) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuMemsetD8_v2(Address(pointer), static_cast<uint8_t>(value), count));
}

cudaError_t sim_cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  return ToRuntime(
      TheDriver().cuMemsetD8Async(Address(pointer), static_cast<uint8_t>(value), count, stream));
}

cudaError_t sim_cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuMemsetD2D8_v2(Address(pointer), pitch, static_cast<uint8_t>(value),
                                               width, height));
}

cudaError_t sim_cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width,
                                  size_t height, cudaStream_t stream) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuMemsetD2D8Async(
      Address(pointer), pitch, static_cast<uint8_t>(value), width, height, stream));
}

}  // extern "C"
