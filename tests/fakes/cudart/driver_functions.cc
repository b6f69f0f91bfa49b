#include "tests/fakes/cudart/driver_functions.h"

#include <dlfcn.h>

#include <string>

namespace ranktap::standin {
namespace {

template <typename Function>
void Find(void* library, const std::string& name, DriverFunction<Function>* function) {
  auto address = [&](const std::string& symbol) {
    return reinterpret_cast<decltype(function->legacy)>(dlsym(library, symbol.c_str()));
  };
  function->legacy = address(name);
  function->per_thread = address(name + "_ptsz");
  if (function->per_thread == nullptr) function->per_thread = address(name + "_ptds");
}

const Driver* Load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return nullptr;
  auto get_table = reinterpret_cast<CUresult (*)(const void**, const CUuuid*)>(
      dlsym(library, "cuGetExportTable"));
  const void* table = nullptr;
  if (get_table == nullptr || get_table(&table, &kMachineUuid) != CUDA_SUCCESS) return nullptr;
  Driver* driver = new Driver;
  driver->machine = static_cast<const MachineLink*>(table);
#define STANDIN_FIND(name) Find(library, #name, &driver->name);
  STANDIN_DRIVER_FUNCTIONS(STANDIN_FIND)
#undef STANDIN_FIND
  return driver;
}

}  // namespace

thread_local bool t_per_thread_default = false;

const Driver* FindDriver() {
  static const Driver* driver = Load();
  return driver;
}

const Driver& TheDriver() { return *FindDriver(); }

}  // namespace ranktap::standin
