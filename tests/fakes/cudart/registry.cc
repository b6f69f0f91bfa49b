#include "tests/fakes/cudart/registry.h"

#include <map>
#include <mutex>
#include <string>

#include "tests/fakes/cudart/runtime_call.h"

namespace ranktap::standin {
namespace {

struct Binary {
  const void* image;
  CUlibrary library = nullptr;
};

struct Kernel {
  Binary* binary;
  const char* name;
  CUfunction function = nullptr;
};

struct Variable {
  Binary* binary;
  const char* name;
  size_t bytes;
  CUdeviceptr address = 0;
};

struct Registry {
  std::mutex mutex;
  std::map<const void*, Kernel> kernels;
  std::map<const void*, Variable> variables;
};

// Leaked: unregistration runs at exit.
Registry& TheRegistry() {
  static Registry* registry = new Registry;
  return *registry;
}

cudaError_t LoadBinary(Binary* binary) {
  if (binary->library != nullptr) return cudaSuccess;
  return ToRuntime(TheDriver().cuLibraryLoadData(&binary->library, binary->image, nullptr, nullptr,
                                                 0, nullptr, nullptr, 0));
}

}  // namespace

void** RegisterFatBinary(const void* image) { return reinterpret_cast<void**>(new Binary{image}); }

void UnregisterFatBinary(void**) {}  // at exit; the process goes away with everything

void RegisterKernel(void** binary, const void* host_function, const char* name) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  registry.kernels[host_function] = {reinterpret_cast<Binary*>(binary), name};
}

void RegisterVariable(void** binary, const void* host_variable, const char* name, size_t bytes) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  registry.variables[host_variable] = {reinterpret_cast<Binary*>(binary), name, bytes};
}

const char* RegisteredName(const void* host_function) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto found = registry.kernels.find(host_function);
  return found == registry.kernels.end() ? nullptr : found->second.name;
}

cudaError_t FindKernel(const void* host_function, CUfunction* function) {
  Registry& registry = TheRegistry();
  Kernel* kernel;
  {
    std::lock_guard lock(registry.mutex);
    auto found = registry.kernels.find(host_function);
    if (found == registry.kernels.end()) return cudaErrorInvalidDeviceFunction;
    kernel = &found->second;
    *function = kernel->function;
  }
  if (*function != nullptr) return cudaSuccess;
  // Tools hear of these calls and must not be called under our lock. Two threads at once load
  // twice; both get the same kernel in the end.
  static std::mutex loading;
  std::lock_guard lock(loading);
  cudaError_t loaded = LoadBinary(kernel->binary);
  if (loaded != cudaSuccess) return loaded;
  CUkernel handle;
  RETURN_IF_ERROR(TheDriver().cuLibraryGetKernel(&handle, kernel->binary->library, kernel->name));
  RETURN_IF_ERROR(TheDriver().cuKernelGetFunction(function, handle));
  std::lock_guard store(registry.mutex);
  kernel->function = *function;
  return cudaSuccess;
}

cudaError_t FindSymbol(const void* host_variable, CUdeviceptr* address, size_t* bytes) {
  Registry& registry = TheRegistry();
  Variable* variable;
  {
    std::lock_guard lock(registry.mutex);
    auto found = registry.variables.find(host_variable);
    if (found == registry.variables.end()) return cudaErrorInvalidSymbol;
    variable = &found->second;
  }
  *bytes = variable->bytes;
  if (variable->address == 0) {
    cudaError_t loaded = LoadBinary(variable->binary);
    if (loaded != cudaSuccess) return loaded;
    // The driver does not know the size of an unread image's variable: memory of our own.
    RETURN_IF_ERROR(TheDriver().cuMemAlloc_v2(&variable->address, variable->bytes));
  }
  *address = variable->address;
  return cudaSuccess;
}

}  // namespace ranktap::standin
