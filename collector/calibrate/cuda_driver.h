// The CUDA driver's functions that calibrate calls, from libcuda.so.1 of this machine: never
// linked, so that the tool runs where there is no driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "collector/file/result.h"

namespace ranktap::collector {

// As <cuda.h> has them: handles are pointers, devices are numbers, addresses have 64 bits.
using CudaHandle = void*;
using CudaAddress = uint64_t;

// clang-format off
#define RANKTAP_CUDA_FUNCTIONS(X) \
  X(cuInit, unsigned) \
  X(cuDriverGetVersion, int*) \
  X(cuDeviceGetCount, int*) \
  X(cuDeviceGet, int*, int) \
  X(cuDeviceGetName, char*, int, int) \
  X(cuDeviceGetUuid_v2, void*, int) \
  X(cuDeviceTotalMem_v2, size_t*, int) \
  X(cuDeviceGetAttribute, int*, int, int) \
  X(cuDeviceCanAccessPeer, int*, int, int) \
  X(cuDevicePrimaryCtxRetain, CudaHandle*, int) \
  X(cuDevicePrimaryCtxRelease_v2, int) \
  X(cuCtxSetCurrent, CudaHandle) \
  X(cuCtxEnablePeerAccess, CudaHandle, unsigned) \
  X(cuModuleLoadData, CudaHandle*, const void*) \
  X(cuModuleUnload, CudaHandle) \
  X(cuModuleGetFunction, CudaHandle*, CudaHandle, const char*) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, int*, CudaHandle, int, size_t) \
  X(cuMemAlloc_v2, CudaAddress*, size_t) \
  X(cuMemFree_v2, CudaAddress) \
  X(cuMemHostAlloc, void**, size_t, unsigned) \
  X(cuMemFreeHost, void*) \
  X(cuMemsetD8_v2, CudaAddress, unsigned char, size_t) \
  X(cuMemcpyDtoH_v2, void*, CudaAddress, size_t) \
  X(cuMemcpyHtoDAsync_v2, CudaAddress, const void*, size_t, CudaHandle) \
  X(cuMemcpyDtoHAsync_v2, void*, CudaAddress, size_t, CudaHandle) \
  X(cuMemcpyPeerAsync, CudaAddress, CudaHandle, CudaAddress, CudaHandle, size_t, CudaHandle) \
  X(cuStreamCreate, CudaHandle*, unsigned) \
  X(cuStreamDestroy_v2, CudaHandle) \
  X(cuStreamSynchronize, CudaHandle) \
  X(cuEventCreate, CudaHandle*, unsigned) \
  X(cuEventDestroy_v2, CudaHandle) \
  X(cuEventRecord, CudaHandle, CudaHandle) \
  X(cuEventSynchronize, CudaHandle) \
  X(cuEventElapsedTime, float*, CudaHandle, CudaHandle) \
  X(cuLaunchKernel, CudaHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, CudaHandle, void**, void**)
// clang-format on

// One thread's. After a call that failed no other is made.
class CudaDriver {
 public:
  // Fails where there is no libcuda.so.1, or one without these functions.
  static Result<CudaDriver> Load();

#define RANKTAP_CUDA_CALL(name, ...)            \
  template <typename... Arguments>              \
  bool name(Arguments... arguments) {           \
    return Check(#name, name##_, arguments...); \
  }
  RANKTAP_CUDA_FUNCTIONS(RANKTAP_CUDA_CALL)
#undef RANKTAP_CUDA_CALL

  // "cuMemAlloc_v2: out of memory (2)"; empty: no call failed.
  const std::string& failure() const { return failure_; }
  int status() const { return status_; }  // of that call
  // For what is given back after a failure.
  void Forget() { failure_.clear(); }
  void Remember(const std::string& failure) { failure_ = failure; }
  // Tests' libcuda.so.1: it times kernels and computes nothing.
  bool is_stand_in() const { return is_stand_in_; }

 private:
  CudaDriver() = default;

  template <typename Function, typename... Arguments>
  bool Check(const char* name, Function* function, Arguments... arguments) {
    if (!failure_.empty()) return false;
    const int status = function(arguments...);
    if (status != 0) Fail(name, status);
    return status == 0;
  }
  void Fail(const char* name, int status);

#define RANKTAP_CUDA_MEMBER(name, ...) int (*name##_)(__VA_ARGS__) = nullptr;
  RANKTAP_CUDA_FUNCTIONS(RANKTAP_CUDA_MEMBER)
#undef RANKTAP_CUDA_MEMBER
  int (*error_text_)(int, const char**) = nullptr;
  bool is_stand_in_ = false;
  int status_ = 0;
  std::string failure_;
};

}  // namespace ranktap::collector
