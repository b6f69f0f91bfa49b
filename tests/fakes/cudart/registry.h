// What nvcc's start-up code registers: code objects, kernels and variables under host addresses.
// They are loaded into the driver when they are first needed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>

namespace ranktap::standin {

void** RegisterFatBinary(const void* image);
void UnregisterFatBinary(void** handle);
void RegisterKernel(void** binary, const void* host_function, const char* name);
void RegisterVariable(void** binary, const void* host_variable, const char* name, size_t bytes);

// Null for an address nobody registered.
const char* RegisteredName(const void* host_function);
// Within an admitted call with a context. cudaErrorInvalidDeviceFunction for a stranger.
cudaError_t FindKernel(const void* host_function, CUfunction* function);
cudaError_t FindSymbol(const void* host_variable, CUdeviceptr* address, size_t* bytes);

}  // namespace ranktap::standin
