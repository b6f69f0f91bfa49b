// Kernel launches, kernel attributes, occupancy.
#include <string.h>

#include "runtime_api.gen.h"
#include "tests/fakes/cudart/registry.h"
#include "tests/fakes/cudart/runtime_call.h"

using namespace ranktap::standin;

namespace {

cudaError_t Resolve(const void* func, CUfunction* function) {
  cudaError_t ready = EnsureContext();
  return ready == cudaSuccess ? FindKernel(func, function) : ready;
}

cudaError_t LaunchFunction(CUfunction function, dim3 grid, dim3 block, size_t shared, void** args,
                           cudaStream_t stream) {
  CUresult result =
      TheDriver().cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 static_cast<unsigned>(shared), stream, args, nullptr);
  // The runtime's name for a shape that does not fit.
  return result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : ToRuntime(result);
}

}  // namespace

extern "C" {

cudaError_t sim_cudaLaunchKernel(const void* func, dim3 grid, dim3 block, void** args,
                                 size_t shared, cudaStream_t stream) {
  CUfunction function;
  cudaError_t found = Resolve(func, &function);
  if (found != cudaSuccess) return found;
  return LaunchFunction(function, grid, block, shared, args, stream);
}

cudaError_t sim___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                   size_t shared, cudaStream_t stream) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  return LaunchFunction(reinterpret_cast<CUfunction>(kernel), grid, block, shared, args, stream);
}

cudaError_t sim_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func,
                                    void** args) {
  CUfunction function;
  if (config == nullptr) return cudaErrorInvalidValue;
  cudaError_t found = Resolve(func, &function);
  if (found != cudaSuccess) return found;
  CUlaunchConfig driver_config{};
  driver_config.gridDimX = config->gridDim.x;
  driver_config.gridDimY = config->gridDim.y;
  driver_config.gridDimZ = config->gridDim.z;
  driver_config.blockDimX = config->blockDim.x;
  driver_config.blockDimY = config->blockDim.y;
  driver_config.blockDimZ = config->blockDim.z;
  driver_config.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  driver_config.hStream = config->stream;
  driver_config.numAttrs = config->numAttrs;
  // The two attribute types are one layout in the vendor's headers.
  static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
  driver_config.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
  return ToRuntime(TheDriver().cuLaunchKernelEx(&driver_config, function, args, nullptr));
}

cudaError_t sim_cudaLaunchCooperativeKernel(const void* func, dim3 grid, dim3 block, void** args,
                                            size_t shared, cudaStream_t stream) {
  CUfunction function;
  cudaError_t found = Resolve(func, &function);
  if (found != cudaSuccess) return found;
  return ToRuntime(
      TheDriver().cuLaunchCooperativeKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
                                            block.z, static_cast<unsigned>(shared), stream, args));
}

cudaError_t sim_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuLaunchHostFunc(stream, function, argument));
}

cudaError_t sim_cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* func) {
  CUfunction function;
  cudaError_t found = Resolve(func, &function);
  if (found != cudaSuccess) return found;
  *attributes = {};
  auto read = [&](CUfunction_attribute attribute) {
    int value = 0;
    TheDriver().cuFuncGetAttribute(&value, attribute, function);
    return value;
  };
  attributes->sharedSizeBytes = static_cast<size_t>(read(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  attributes->localSizeBytes = static_cast<size_t>(read(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  attributes->maxThreadsPerBlock = read(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  attributes->numRegs = read(CU_FUNC_ATTRIBUTE_NUM_REGS);
  attributes->ptxVersion = read(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  attributes->binaryVersion = read(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  attributes->maxDynamicSharedSizeBytes = read(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  return cudaSuccess;
}

cudaError_t sim_cudaFuncSetAttribute(const void* func, cudaFuncAttribute attribute, int value) {
  CUfunction function;
  cudaError_t found = Resolve(func, &function);
  if (found != cudaSuccess) return found;
  return ToRuntime(TheDriver().cuFuncSetAttribute(
      function, static_cast<CUfunction_attribute>(attribute), value));
}

cudaError_t sim_cudaFuncSetCacheConfig(const void* func, cudaFuncCache config) {
  CUfunction function;
  cudaError_t found = Resolve(func, &function);
  if (found != cudaSuccess) return found;
  return ToRuntime(TheDriver().cuFuncSetCacheConfig(function, static_cast<CUfunc_cache>(config)));
}

cudaError_t sim_cudaFuncGetName(const char** name, const void* func) {
  *name = RegisteredName(func);
  return *name == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
}

cudaError_t sim_cudaGetFuncBySymbol(cudaFunction_t* function, const void* func) {
  return Resolve(func, function);
}

cudaError_t sim_cudaGetKernel(cudaKernel_t* kernel, const void* func) {
  return Resolve(func, reinterpret_cast<CUfunction*>(kernel));
}

cudaError_t sim_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                       const void* func,
                                                                       int threads, size_t shared,
                                                                       unsigned int flags) {
  CUfunction function;
  cudaError_t found = Resolve(func, &function);
  if (found != cudaSuccess) return found;
  return ToRuntime(TheDriver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, threads, shared, flags));
}

cudaError_t sim_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* func,
                                                              int threads, size_t shared) {
  return sim_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, threads, shared,
                                                                    0);
}

}  // extern "C"
