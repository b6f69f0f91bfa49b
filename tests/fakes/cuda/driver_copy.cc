// Copies and memsets. The synchronous ones wait where the real driver waits: a device-to-device
// copy and a memset of device memory do not.
#include "driver_api.gen.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/make_work.h"
#include "tests/fakes/machine/memory.h"
#include "tests/fakes/machine/schedule.h"

using namespace ranktap::standin;

namespace {

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool OnHost(MemoryKind kind) {
  return kind == MemoryKind::kPageable || kind == MemoryKind::kPinned;
}

CUresult Give(CUstream handle, Work work, bool async) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) {
    return CurrentThread().current() == nullptr ? CUDA_ERROR_INVALID_CONTEXT
                                                : CUDA_ERROR_INVALID_HANDLE;
  }
  if (!async && stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const CopyShape& shape = work.operation.copy;
  bool touches_host =
      work.operation.kind == OperationKind::kCopy && (OnHost(shape.source) || OnHost(shape.target));
  // An asynchronous copy with pageable memory is staged: the call returns when it is done.
  bool staged = work.operation.kind == OperationKind::kCopy && stream->capture == nullptr &&
                shape.target == MemoryKind::kPageable;
  uint64_t finished = 0;
  CUresult result = Submit(stream, std::move(work), &finished);
  if (result == CUDA_SUCCESS && ((!async && touches_host) || staged)) HostWait(finished);
  return result;
}

CUresult Copy(uint64_t target, uint64_t source, size_t bytes, CUstream stream, bool async) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (target == 0 || source == 0) return CUDA_ERROR_INVALID_VALUE;
  return Give(stream, CopyWork(target, source, bytes, async), async);
}

CUresult CopyBox(const CUDA_MEMCPY3D& copy, CUstream stream, bool async) {
  Work work;
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  if (!BoxCopyWork(copy, async, &work)) return CUDA_ERROR_NOT_SUPPORTED;
  return Give(stream, std::move(work), async);
}

CUresult Fill(CUdeviceptr target, size_t pitch, unsigned value, unsigned element, size_t width,
              size_t height, CUstream stream, bool async) {
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  bool known;
  Lookup(target, &known);
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMSET_NODE_PARAMS params{target, pitch, value, element, width, height};
  return Give(stream, MemsetWork(params, async), async);
}

}  // namespace

extern "C" {

CUresult sim_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return Copy(dst, src, bytes, nullptr, false);
}
CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t bytes) {
  return Copy(dst, Address(src), bytes, nullptr, false);
}
CUresult sim_cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t bytes) {
  return Copy(Address(dst), src, bytes, nullptr, false);
}
CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return Copy(dst, src, bytes, nullptr, false);
}
CUresult sim_cuMemcpyPeer(CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t bytes) {
  return Copy(dst, src, bytes, nullptr, false);
}
CUresult sim_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(dst, src, bytes, stream, true);
}
CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  return Copy(dst, Address(src), bytes, stream, true);
}
CUresult sim_cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(Address(dst), src, bytes, stream, true);
}
CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(dst, src, bytes, stream, true);
}
CUresult sim_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t bytes,
                               CUstream stream) {
  return Copy(dst, src, bytes, stream, true);
}

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return CopyBox(BoxOf(*copy), nullptr, false);
}
CUresult sim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return CopyBox(BoxOf(*copy), nullptr, false);
}
CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return CopyBox(BoxOf(*copy), stream, true);
}
CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return CopyBox(*copy, nullptr, false); }
CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return CopyBox(*copy, stream, true);
}

CUresult sim_cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count) {
  return Fill(dst, count, value, 1, count, 1, nullptr, false);
}
CUresult sim_cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count) {
  return Fill(dst, count * 2, value, 2, count, 1, nullptr, false);
}
CUresult sim_cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count) {
  return Fill(dst, count * 4, value, 4, count, 1, nullptr, false);
}
CUresult sim_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return Fill(dst, count, value, 1, count, 1, stream, true);
}
CUresult sim_cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count,
                              CUstream stream) {
  return Fill(dst, count * 2, value, 2, count, 1, stream, true);
}
CUresult sim_cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  return Fill(dst, count * 4, value, 4, count, 1, stream, true);
}
CUresult sim_cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                             size_t height) {
  return Fill(dst, pitch, value, 1, width, height, nullptr, false);
}
CUresult sim_cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
                              size_t height) {
  return Fill(dst, pitch, value, 4, width, height, nullptr, false);
}
CUresult sim_cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                               size_t height, CUstream stream) {
  return Fill(dst, pitch, value, 1, width, height, stream, true);
}
CUresult sim_cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
                                size_t height, CUstream stream) {
  return Fill(dst, pitch, value, 4, width, height, stream, true);
}

}  // extern "C"
