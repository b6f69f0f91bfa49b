// Initialisation, versions, errors, entry point lookup, and the injection of a tool.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mutex>

#include "driver_api.gen.h"
#include "driver_entry_points.gen.h"
#include "tests/fakes/cuda/machine_link.h"
#include "tests/fakes/machine/announce.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/device.h"
#include "tests/fakes/machine/script.h"
#include "tests/fakes/machine/truth_log.h"

using namespace ranktap::standin;

namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorText* FindError(CUresult code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

// As the real driver: the library named by CUDA_INJECTION64_PATH, before anything else works. An
// exception must not get into a C caller, and there is none to be caught: the entry is C.
void LoadInjection() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || path[0] == 0 || strcmp(path, "none") == 0) return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    if (NumberSetting("VERBOSE", 0) != 0) {
      fprintf(stderr, "stand-in GPU: CUDA_INJECTION64_PATH: %s\n", dlerror());
    }
    return;
  }
  auto entry = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (entry == nullptr || entry() == 0) dlclose(library);
}

CUresult Initialize() {
  static std::once_flag once;
  static CUresult result = CUDA_SUCCESS;
  if (InForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  std::call_once(once, [] {
    ClaimProcess();
    if (DeviceCount() == 0) {
      result = CUDA_ERROR_NO_DEVICE;
      return;
    }
    atexit(CloseTruth);
    LoadInjection();
    SetInitialized();
    Resource resource;
    resource.change = ResourceChange::kInitFinished;
    Announce(resource);
  });
  return result;
}

}  // namespace

namespace ranktap::standin {

CUresult InitializeMachine() { return Initialize(); }

}  // namespace ranktap::standin

extern "C" {

CUresult sim_cuInit(unsigned int flags) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : Initialize();
}

CUresult sim_cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult sim_cuGetErrorName(CUresult error, const char** text) {
  const ErrorText* known = FindError(error);
  *text = known == nullptr ? nullptr : known->name;
  return known == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_cuGetErrorString(CUresult error, const char** text) {
  const ErrorText* known = FindError(error);
  *text = known == nullptr ? nullptr : known->text;
  return known == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  *function = nullptr;
  bool name_known = false;
  // Rows of one name are in the order of their versions: the last that fits is wanted.
  for (const EntryPoint& entry : kEntryPoints) {
    if (strcmp(entry.name, symbol) != 0) continue;
    name_known = true;
    if (entry.version > version || (entry.per_thread && !per_thread)) continue;
    *function = entry.function;
  }
  if (status != nullptr) {
    *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : name_known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  if (*function == nullptr && status == nullptr) return CUDA_ERROR_NOT_FOUND;
  return CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return sim_cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

CUresult sim_cuProfilerStart() { return CUDA_SUCCESS; }
CUresult sim_cuProfilerStop() { return CUDA_SUCCESS; }

__attribute__((visibility("default"))) CUresult entry_cuGetExportTable(
    const void** table, const CUuuid* id) __asm__("cuGetExportTable");
CUresult entry_cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (memcmp(id, &kMachineUuid, sizeof kMachineUuid) != 0) {
    LogRefusal("cuGetExportTable");
    return CUDA_ERROR_INVALID_VALUE;
  }
  *table = TheMachineLink();
  return CUDA_SUCCESS;
}

}  // extern "C"
