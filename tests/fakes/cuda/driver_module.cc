// Modules, libraries, kernels and their attributes. A CUlibrary is a module, a CUkernel is a
// function.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver_api.gen.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/function.h"

using namespace ranktap::standin;

namespace {

template <typename Handle>
CUresult Load(Handle* handle, const void* image, bool needs_context) {
  if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (needs_context && CurrentThread().current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Module* module = LoadModule(image);
  if (module == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  *handle = reinterpret_cast<Handle>(module);
  return CUDA_SUCCESS;
}

// The image stays: a module's text is read later too.
char* ReadFile(const char* path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat status;
  char* image = nullptr;
  if (fstat(file, &status) == 0) image = static_cast<char*>(calloc(1, status.st_size + 64));
  ssize_t got = image == nullptr ? -1 : read(file, image, static_cast<size_t>(status.st_size));
  close(file);
  return got == status.st_size ? image : nullptr;
}

CUresult AttributeOf(int* value, CUfunction_attribute attribute, const Function* function) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(function->max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->static_shared);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(function->local_per_thread);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(function->registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->max_dynamic_shared != 0 ? function->max_dynamic_shared : 49152;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult ChangeAttribute(Function* function, CUfunction_attribute attribute, int value) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    function->max_dynamic_shared = value;
  }
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult Find(Handle* handle, const void* module_handle, const char* name) {
  Module* module = AsModule(module_handle);
  if (module == nullptr || name == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Function* function = FindFunction(module, name);
  *handle = reinterpret_cast<Handle>(function);
  return function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuModuleLoadData(CUmodule* module, const void* image) {
  return Load(module, image, true);
}
CUresult sim_cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                                void**) {
  return Load(module, image, true);
}
CUresult sim_cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return Load(module, image, true);
}
CUresult sim_cuModuleLoad(CUmodule* module, const char* path) {
  const char* image = path == nullptr ? nullptr : ReadFile(path);
  return image == nullptr ? CUDA_ERROR_FILE_NOT_FOUND : Load(module, image, true);
}

CUresult sim_cuModuleUnload(CUmodule handle) {
  Module* module = AsModule(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  UnloadModule(module);
  return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return Find(function, module, name);
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                                  const char* name) {
  Module* module = AsModule(handle);
  if (module == nullptr || name == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  // Sizes are not read from the image: a variable nobody has registered has one page.
  size_t size = 0;
  uint64_t found = FindVariable(module, name, 4096, &size);
  if (found == 0) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                               unsigned int, CUlibraryOption*, void**, unsigned int) {
  return Load(library, code, false);
}

CUresult sim_cuLibraryUnload(CUlibrary library) {
  Module* module = AsModule(library);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  UnloadModule(module);
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return Find(kernel, library, name);
}

CUresult sim_cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (AsModule(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                const char* name) {
  return sim_cuModuleGetGlobal_v2(address, bytes, reinterpret_cast<CUmodule>(library), name);
}

CUresult sim_cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (AsFunction(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetName(const char** name, CUkernel kernel) {
  const Function* function = AsFunction(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name;
  return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                  CUdevice) {
  return AttributeOf(value, attribute, AsFunction(kernel));
}

CUresult sim_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                  CUdevice) {
  return ChangeAttribute(AsFunction(kernel), attribute, value);
}

CUresult sim_cuFuncGetName(const char** name, CUfunction handle) {
  const Function* function = AsFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name;
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetModule(CUmodule* module, CUfunction handle) {
  const Function* function = AsFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return AttributeOf(value, attribute, AsFunction(handle));
}

CUresult sim_cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return ChangeAttribute(AsFunction(handle), attribute, value);
}

CUresult sim_cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
  return AsFunction(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult sim_cuFuncLoad(CUfunction handle) {
  return AsFunction(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult sim_cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  if (AsFunction(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

}  // extern "C"
