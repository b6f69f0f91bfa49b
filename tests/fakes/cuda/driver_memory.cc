// Memory: device, host, managed, stream-ordered.
#include <mutex>
#include <vector>

#include "driver_api.gen.h"
#include "tests/fakes/machine/announce.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/clock.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/device.h"
#include "tests/fakes/machine/memory.h"
#include "tests/fakes/machine/schedule.h"

using namespace ranktap::standin;

namespace {

struct Pool {
  uint32_t magic = 0x706f6f6c;
  uint32_t device = 0;
  cuuint64_t release_threshold = 0;
  uint64_t used = 0;
};

constexpr uint32_t kNoStream = UINT32_MAX;

MemoryOperation Describe(const Allocation& allocation, bool made) {
  MemoryOperation operation{};
  operation.allocation = made;
  operation.kind = allocation.kind;
  operation.address = allocation.address;
  operation.bytes = allocation.bytes;
  operation.device_ns = DeviceNow();
  operation.device = allocation.device;
  operation.context_id = allocation.context_id;
  operation.stream_id = kNoStream;
  operation.correlation = CurrentThread().correlation;
  operation.pool_address = allocation.pool;
  return operation;
}

CUresult AllocateAs(MemoryKind kind, size_t bytes, unsigned flags, uint64_t* address) {
  Context* context = CurrentThread().current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation wanted, made;
  wanted.bytes = bytes;
  wanted.kind = kind;
  wanted.flags = flags;
  wanted.device = context->device;
  wanted.context_id = context->id;
  if (!Allocate(wanted, &made)) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = made.address;
  Announce(Describe(made, true));
  return CUDA_SUCCESS;
}

// Freeing waits for the device, like the real cuMemFree: nothing may still use the memory.
CUresult Free(uint64_t address, bool wait) {
  if (address == 0) return CUDA_SUCCESS;
  bool known;
  Allocation allocation = Lookup(address, &known);
  if (!known || allocation.address != address) return CUDA_ERROR_INVALID_VALUE;
  Context* context = CurrentThread().current();
  if (wait && context != nullptr) {
    uint64_t tail;
    {
      std::lock_guard lock(MachineLock());
      tail = ContextTail(*context);
    }
    HostWait(tail);
  }
  if (!Release(address, &allocation)) return CUDA_ERROR_INVALID_VALUE;
  Announce(Describe(allocation, false));
  return CUDA_SUCCESS;
}

Pool* DefaultPool(uint32_t device) {
  static std::mutex mutex;
  static auto* pools = new std::vector<Pool*>;
  bool made = false;
  Pool* pool;
  {
    std::lock_guard lock(mutex);
    while (pools->size() <= device) pools->push_back(nullptr);
    made = (*pools)[device] == nullptr;
    if (made) (*pools)[device] = new Pool{.device = device};
    pool = (*pools)[device];
  }
  if (made) {
    Announce(PoolOperation{PoolChange::kCreated, reinterpret_cast<uint64_t>(pool), 0, 0, device,
                           CurrentThread().correlation, DeviceNow()});
  }
  return pool;
}

Pool* AsPool(CUmemoryPool handle) {
  Pool* pool = reinterpret_cast<Pool*>(handle);
  return pool != nullptr && pool->magic == Pool{}.magic ? pool : nullptr;
}

CUresult AllocateFromPool(CUdeviceptr* address, size_t bytes, Pool* pool, CUstream handle) {
  Stream* stream = AsStream(handle);
  if (address == nullptr || bytes == 0 || pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Allocation wanted, made;
  wanted.bytes = bytes;
  wanted.kind = MemoryKind::kDevice;
  wanted.device = pool->device;
  wanted.context_id = stream->context->id;
  wanted.pool = reinterpret_cast<uint64_t>(pool);
  if (!Allocate(wanted, &made)) return CUDA_ERROR_OUT_OF_MEMORY;
  pool->used += bytes;
  *address = made.address;
  MemoryOperation operation = Describe(made, true);
  operation.async = true;
  operation.stream_id = stream->id;
  operation.pool_used = pool->used;
  Announce(operation);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address;
  CUresult result = AllocateAs(MemoryKind::kDevice, bytesize, 0, &address);
  if (result == CUDA_SUCCESS) *dptr = address;
  return result;
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pitch, size_t width, size_t height,
                                unsigned int) {
  if (dptr == nullptr || pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + 511) / 512 * 512;
  return sim_cuMemAlloc_v2(dptr, *pitch * height);
}

CUresult sim_cuMemFree_v2(CUdeviceptr dptr) { return Free(dptr, true); }

CUresult sim_cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address;
  CUresult result = AllocateAs(MemoryKind::kManaged, bytesize, flags, &address);
  if (result == CUDA_SUCCESS) *dptr = address;
  return result;
}

CUresult sim_cuMemHostAlloc(void** pp, size_t bytesize, unsigned int flags) {
  if (pp == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address;
  CUresult result = AllocateAs(MemoryKind::kPinned, bytesize, flags, &address);
  if (result == CUDA_SUCCESS) *pp = reinterpret_cast<void*>(address);
  return result;
}

CUresult sim_cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return sim_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult sim_cuMemFreeHost(void* p) { return Free(reinterpret_cast<uint64_t>(p), true); }

CUresult sim_cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int flags) {
  Context* context = CurrentThread().current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (p == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation own;
  own.address = reinterpret_cast<uint64_t>(p);
  own.bytes = bytesize;
  own.flags = flags;
  own.device = context->device;
  own.context_id = context->id;
  return Register(own) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult sim_cuMemHostUnregister(void* p) {
  Allocation was = Lookup(reinterpret_cast<uint64_t>(p));
  if (!was.registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  Release(reinterpret_cast<uint64_t>(p), &was);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* p, unsigned int) {
  bool known;
  Lookup(reinterpret_cast<uint64_t>(p), &known);
  if (!known || device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetFlags(unsigned int* flags, void* p) {
  bool known;
  Allocation allocation = Lookup(reinterpret_cast<uint64_t>(p), &known);
  if (!known || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = allocation.flags;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Context* context = CurrentThread().current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *total = DeviceMemoryBytes();
  *free = DeviceMemoryBytes() - BytesInUse(context->device);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr dptr) {
  bool known;
  Allocation allocation = Lookup(dptr, &known);
  if (!known) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = allocation.address;
  if (bytes != nullptr) *bytes = allocation.bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  bool known;
  Allocation allocation = Lookup(ptr, &known);
  if (!known || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool host = allocation.kind == MemoryKind::kPinned;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<uint64_t*>(data) = ptr;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = static_cast<int>(allocation.device);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(data) = allocation.kind == MemoryKind::kManaged;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<uint64_t*>(data) = allocation.address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = allocation.bytes;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult sim_cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream stream) {
  const Stream* known = AsStream(stream);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return AllocateFromPool(dptr, bytesize, DefaultPool(known->context->device), stream);
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                     CUstream stream) {
  return AllocateFromPool(dptr, bytesize, AsPool(pool), stream);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr dptr, CUstream handle) {
  Stream* stream = AsStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Allocation was;
  if (!Release(dptr, &was)) return CUDA_ERROR_INVALID_VALUE;
  MemoryOperation operation = Describe(was, false);
  operation.async = true;
  operation.stream_id = stream->id;
  if (Pool* pool = AsPool(reinterpret_cast<CUmemoryPool>(was.pool))) {
    pool->used -= was.bytes;
    operation.pool_used = pool->used;
  }
  Announce(operation);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice dev) {
  if (dev < 0 || static_cast<uint32_t>(dev) >= DeviceCount()) return CUDA_ERROR_INVALID_DEVICE;
  *pool = reinterpret_cast<CUmemoryPool>(DefaultPool(static_cast<uint32_t>(dev)));
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return sim_cuDeviceGetDefaultMemPool(pool, dev);
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                   void* value) {
  Pool* pool = AsPool(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool->release_threshold = *static_cast<cuuint64_t*>(value);
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool handle, size_t bytes) {
  Pool* pool = AsPool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Announce(PoolOperation{PoolChange::kTrimmed, reinterpret_cast<uint64_t>(pool), bytes, pool->used,
                         pool->device, CurrentThread().correlation, DeviceNow()});
  return CUDA_SUCCESS;
}

}  // extern "C"
