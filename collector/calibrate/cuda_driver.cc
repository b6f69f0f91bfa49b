#include "collector/calibrate/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace ranktap::collector {

// The library stays: it has threads of its own.
Result<CudaDriver> CudaDriver::Load() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Failure{"there is no driver (libcuda.so.1)"};
  CudaDriver driver;
  const char* missing = nullptr;
  const auto find = [&](auto* function, const char* name) {
    *reinterpret_cast<void**>(function) = ::dlsym(library, name);
    if (*function == nullptr && missing == nullptr) missing = name;
  };
#define RANKTAP_CUDA_FIND(name, ...) find(&driver.name##_, #name);
  RANKTAP_CUDA_FUNCTIONS(RANKTAP_CUDA_FIND)
#undef RANKTAP_CUDA_FIND
  find(&driver.error_text_, "cuGetErrorString");
  if (missing != nullptr) return Failure{fmt::format("libcuda.so.1 has no {}", missing)};
  driver.is_stand_in_ = ::dlsym(library, "ranktap_standin_marker") != nullptr;
  return driver;
}

void CudaDriver::Fail(const char* name, int status) {
  const char* text = nullptr;
  if (error_text_(status, &text) != 0 || text == nullptr) text = "an unknown error";
  status_ = status;
  failure_ = fmt::format("{}: {} ({})", name, text, status);
}

}  // namespace ranktap::collector
