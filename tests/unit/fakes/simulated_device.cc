#include "tests/unit/fakes/simulated_device.h"

#include "tests/fakes/cuda/machine_link.h"

extern "C" const ranktap::standin::Marker ranktap_standin_marker;

namespace ranktap::standin_test {

ScopedSetting::ScopedSetting(std::string name, const std::string& value) : name_(std::move(name)) {
  ranktap_standin_marker.change_setting(name_.c_str(), value.c_str());
}

ScopedSetting::~ScopedSetting() { ranktap_standin_marker.change_setting(name_.c_str(), nullptr); }

CUfunction LoadKernel(const char* name) {
  CUmodule module;
  CUfunction kernel;
  EXPECT_CUDA(cudaFree(nullptr));
  EXPECT_CUDA(cuModuleLoadData(&module, kPtx));
  EXPECT_CUDA(cuModuleGetFunction(&kernel, module, name));
  return kernel;
}

CUresult LaunchOne(CUfunction kernel, CUstream stream) {
  return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

}  // namespace ranktap::standin_test
