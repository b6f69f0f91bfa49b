#include "tests/fakes/machine/make_work.h"

#include <string.h>

#include "tests/fakes/machine/device.h"
#include "tests/fakes/machine/memory.h"

namespace ranktap::standin {
namespace {

struct Plane {
  uint64_t start;
  size_t pitch;
  size_t slice;
};

Plane SourceOf(const CUDA_MEMCPY3D& copy) {
  uint64_t base = copy.srcMemoryType == CU_MEMORYTYPE_HOST
                      ? reinterpret_cast<uint64_t>(copy.srcHost)
                      : copy.srcDevice;
  size_t slice = copy.srcPitch * (copy.srcHeight == 0 ? copy.Height : copy.srcHeight);
  return {base + copy.srcZ * slice + copy.srcY * copy.srcPitch + copy.srcXInBytes, copy.srcPitch,
          slice};
}

Plane TargetOf(const CUDA_MEMCPY3D& copy) {
  uint64_t base = copy.dstMemoryType == CU_MEMORYTYPE_HOST
                      ? reinterpret_cast<uint64_t>(copy.dstHost)
                      : copy.dstDevice;
  size_t slice = copy.dstPitch * (copy.dstHeight == 0 ? copy.Height : copy.dstHeight);
  return {base + copy.dstZ * slice + copy.dstY * copy.dstPitch + copy.dstXInBytes, copy.dstPitch,
          slice};
}

CopyShape ShapeOf(uint64_t target, uint64_t source, uint64_t bytes, bool async) {
  Allocation to = Lookup(target), from = Lookup(source);
  CopyShape shape;
  shape.bytes = bytes;
  shape.source = from.kind;
  shape.target = to.kind;
  shape.source_device = from.device;
  shape.source_context = from.context_id;
  shape.target_device = to.device;
  shape.target_context = to.context_id;
  shape.peer = from.kind == MemoryKind::kDevice && to.kind == MemoryKind::kDevice &&
               from.device != to.device;
  shape.async = async;
  return shape;
}

Work CopyOf(const CopyShape& shape) {
  Work work;
  work.operation.kind = OperationKind::kCopy;
  work.operation.copy = shape;
  work.duration_ns = CopyDuration(shape);
  return work;
}

void FillRow(uint64_t row, unsigned value, unsigned element, size_t count) {
  char* at = reinterpret_cast<char*>(row);
  if (element == 1) {
    memset(at, static_cast<int>(value), count);
    return;
  }
  for (size_t i = 0; i < count; ++i) memcpy(at + i * element, &value, element);
}

}  // namespace

Work KernelWork(const KernelShape& shape) {
  Work work;
  work.operation.kind = OperationKind::kKernel;
  work.operation.kernel = shape;
  work.duration_ns = KernelDuration(shape);
  return work;
}

bool ValidShape(const Function& function, const KernelShape& shape) {
  uint64_t threads = uint64_t{1} * shape.block[0] * shape.block[1] * shape.block[2];
  for (int axis = 0; axis < 3; ++axis) {
    if (shape.grid[axis] == 0 || shape.block[axis] == 0) return false;
  }
  return threads <= function.max_threads && shape.dynamic_shared <= 232448;
}

Work CopyWork(uint64_t target, uint64_t source, size_t bytes, bool async) {
  Work work = CopyOf(ShapeOf(target, source, bytes, async));
  work.effect = [target, source, bytes] {
    memmove(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), bytes);
  };
  return work;
}

bool BoxCopyWork(const CUDA_MEMCPY3D& copy, bool async, Work* work) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return false;
  }
  Plane from = SourceOf(copy), to = TargetOf(copy);
  size_t width = copy.WidthInBytes, height = copy.Height, depth = copy.Depth;
  *work = CopyOf(ShapeOf(to.start, from.start, uint64_t{1} * width * height * depth, async));
  work->effect = [from, to, width, height, depth] {
    for (size_t z = 0; z < depth; ++z) {
      for (size_t y = 0; y < height; ++y) {
        memmove(reinterpret_cast<void*>(to.start + z * to.slice + y * to.pitch),
                reinterpret_cast<const void*>(from.start + z * from.slice + y * from.pitch), width);
      }
    }
  };
  return true;
}

CUDA_MEMCPY3D BoxOf(const CUDA_MEMCPY2D& copy) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = copy.srcXInBytes;
  box.srcY = copy.srcY;
  box.srcMemoryType = copy.srcMemoryType;
  box.srcHost = copy.srcHost;
  box.srcDevice = copy.srcDevice;
  box.srcPitch = copy.srcPitch;
  box.dstXInBytes = copy.dstXInBytes;
  box.dstY = copy.dstY;
  box.dstMemoryType = copy.dstMemoryType;
  box.dstHost = copy.dstHost;
  box.dstDevice = copy.dstDevice;
  box.dstPitch = copy.dstPitch;
  box.WidthInBytes = copy.WidthInBytes;
  box.Height = copy.Height;
  box.Depth = 1;
  return box;
}

Work MemsetWork(const CUDA_MEMSET_NODE_PARAMS& params, bool async) {
  Work work;
  work.operation.kind = OperationKind::kMemset;
  MemsetShape& shape = work.operation.memset;
  shape.bytes = uint64_t{1} * params.width * params.elementSize * params.height;
  shape.value = params.value;
  shape.kind = Lookup(params.dst).kind;
  shape.async = async;
  work.duration_ns = MemsetDuration(shape.bytes);
  work.effect = [params] {
    for (size_t y = 0; y < params.height; ++y) {
      FillRow(params.dst + y * params.pitch, params.value, params.elementSize, params.width);
    }
  };
  return work;
}

Work HostFunctionWork(CUhostFn function, void* argument) {
  Work work;
  work.kind = WorkKind::kHostFunction;
  work.duration_ns = kHostFunctionNs;
  work.effect = [function, argument] { function(argument); };
  return work;
}

}  // namespace ranktap::standin
