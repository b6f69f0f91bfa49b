// One call of the runtime API. As DriverCall, and it sees to it that the driver is there.
#pragma once

#include <cuda_runtime_api.h>

#include "tests/fakes/cudart/driver_functions.h"

namespace ranktap::standin {

const char* KernelSymbol(const void* host_function);
const char* KernelSymbol(cudaKernel_t kernel);

class RuntimeCall {
 public:
  RuntimeCall(uint32_t cbid, const char* name, const void* params, bool per_thread,
              const char* symbol = nullptr);
  RuntimeCall(const RuntimeCall&) = delete;
  RuntimeCall& operator=(const RuntimeCall&) = delete;
  ~RuntimeCall();

  bool admitted() const { return admitted_; }
  cudaError_t refusal() const { return refusal_; }
  cudaError_t Refuse();
  // A failure becomes the thread's last error.
  cudaError_t Finish(cudaError_t result);
  cudaError_t FinishErrorQuery(cudaError_t result);
  static int RefuseUntraced(const char* name);

 private:
  const Driver* driver_;
  ApiCall call_{};
  cudaError_t result_ = cudaSuccess;
  cudaError_t refusal_ = cudaSuccess;
  bool admitted_ = false;
  bool open_ = false;
  bool outer_per_thread_ = false;
};

// The thread's last error, and the thread's device.
cudaError_t& LastError();
int& CurrentDevice();
// Makes the primary context of the thread's device current where none is.
cudaError_t EnsureContext();

inline cudaError_t ToRuntime(CUresult result) { return static_cast<cudaError_t>(result); }

}  // namespace ranktap::standin

// In a `sim_` function: returns from it when the driver call fails.
#define RETURN_IF_ERROR(call) \
  if (cudaError_t error_ = ::ranktap::standin::ToRuntime(call); error_ != cudaSuccess) return error_
