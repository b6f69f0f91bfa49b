// What nvcc's start-up code calls, the launch configuration stack, and the entries that give no
// status.
#include <string.h>

#include "runtime_api.gen.h"
#include "tests/fakes/cudart/registry.h"
#include "tests/fakes/cudart/runtime_call.h"

using namespace ranktap::standin;

namespace {

struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared;
  void* stream;
};

// One suffices: nvcc pushes and pops in pairs around a call of the host function.
thread_local LaunchConfiguration t_configuration;

struct ErrorText {
  cudaError_t code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* FindError(cudaError_t code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

#define STANDIN_EXPORT __attribute__((visibility("default")))
#define STANDIN_ENTRY(result, name, ...)                          \
  STANDIN_EXPORT result entry_##name(__VA_ARGS__) __asm__(#name); \
  result entry_##name(__VA_ARGS__)

extern "C" {

STANDIN_ENTRY(const char*, cudaGetErrorName, cudaError_t error) {
  const ErrorText* known = FindError(error);
  return known == nullptr ? "unrecognized error code" : known->name;
}

STANDIN_ENTRY(const char*, cudaGetErrorString, cudaError_t error) {
  const ErrorText* known = FindError(error);
  return known == nullptr ? "unrecognized error code" : known->text;
}

STANDIN_ENTRY(cudaChannelFormatDesc, cudaCreateChannelDesc, int x, int y, int z, int w,
              cudaChannelFormatKind kind) {
  return cudaChannelFormatDesc{x, y, z, w, kind};
}

STANDIN_ENTRY(cudaError_t, cudaGetExportTable, const void**, const cudaUUID_t*) {
  RuntimeCall::RefuseUntraced("cudaGetExportTable");
  return cudaErrorInvalidValue;
}

STANDIN_ENTRY(void**, __cudaRegisterFatBinary, void* image) { return RegisterFatBinary(image); }

STANDIN_ENTRY(void, __cudaRegisterFatBinaryEnd, void**) {}

STANDIN_ENTRY(void, __cudaUnregisterFatBinary, void** handle) { UnregisterFatBinary(handle); }

STANDIN_ENTRY(void, __cudaRegisterFunction, void** handle, const char* host_function, char*,
              const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  RegisterKernel(handle, host_function, name);
}

STANDIN_ENTRY(void, __cudaRegisterVar, void** handle, char* host_variable, char*, const char* name,
              int, size_t bytes, int, int) {
  RegisterVariable(handle, host_variable, name, bytes);
}

STANDIN_ENTRY(void, __cudaRegisterHostVar, void**, const char*, char*, size_t) {
  RuntimeCall::RefuseUntraced("__cudaRegisterHostVar");
}

STANDIN_ENTRY(void, __cudaRegisterManagedVar, void**, void**, char*, const char*, int, size_t, int,
              int) {
  RuntimeCall::RefuseUntraced("__cudaRegisterManagedVar");
}

STANDIN_ENTRY(void, __cudaRegisterUnifiedTable, void**, const void*) {
  RuntimeCall::RefuseUntraced("__cudaRegisterUnifiedTable");
}

STANDIN_ENTRY(void*, __cudaGetProcAddress, const char*) {
  RuntimeCall::RefuseUntraced("__cudaGetProcAddress");
  return nullptr;
}

STANDIN_ENTRY(char, __cudaInitModule, void**) { return 1; }

STANDIN_ENTRY(unsigned, __cudaPushCallConfiguration, dim3 grid, dim3 block, size_t shared,
              void* stream) {
  t_configuration = {grid, block, shared, stream};
  return 0;
}

STANDIN_ENTRY(cudaError_t, __cudaPopCallConfiguration, dim3* grid, dim3* block, size_t* shared,
              void* stream) {
  *grid = t_configuration.grid;
  *block = t_configuration.block;
  *shared = t_configuration.shared;
  *static_cast<void**>(stream) = t_configuration.stream;
  return cudaSuccess;
}

// Called once per kernel, before its first launch. Untraced: the tracing headers have its number
// (504) but no parameters.
STANDIN_ENTRY(cudaError_t, __cudaGetKernel, cudaKernel_t* kernel, const void* host_function) {
  *kernel = nullptr;
  const Driver* driver = FindDriver();
  if (driver == nullptr) return LastError() = cudaErrorInsufficientDriver;
  CUresult ready = driver->machine->initialize();
  if (ready != CUDA_SUCCESS) return LastError() = ToRuntime(ready);
  CUfunction function;
  cudaError_t error = EnsureContext();
  if (error == cudaSuccess) error = FindKernel(host_function, &function);
  if (error != cudaSuccess) return LastError() = error;
  *kernel = reinterpret_cast<cudaKernel_t>(function);
  return cudaSuccess;
}

cudaError_t sim_cudaGetLastError() {
  cudaError_t error = LastError();
  LastError() = cudaSuccess;
  return error;
}

cudaError_t sim_cudaPeekAtLastError() { return LastError(); }
cudaError_t sim_cudaProfilerStart() { return cudaSuccess; }
cudaError_t sim_cudaProfilerStop() { return cudaSuccess; }

}  // extern "C"
