// What the tests of the stand-in share: checks, a kernel to launch, and its settings.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

#define ASSERT_CUDA(call) ASSERT_EQ(static_cast<int>(call), 0)
#define EXPECT_CUDA(call) EXPECT_EQ(static_cast<int>(call), 0)

namespace ranktap::standin_test {

// A PTX module with the kernels `first` and `second`.
inline constexpr char kPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry first(.param .u64 a)\n{\n  ret;\n}\n"
    ".visible .entry second()\n{\n  ret;\n}\n";

// Changes a setting for as long as it lives.
class ScopedSetting {
 public:
  ScopedSetting(std::string name, const std::string& value);
  ~ScopedSetting();
  ScopedSetting(const ScopedSetting&) = delete;
  ScopedSetting& operator=(const ScopedSetting&) = delete;

 private:
  std::string name_;
};

// The kernel `name` of kPtx, in the primary context of the current device.
CUfunction LoadKernel(const char* name);
// One block of one thread.
CUresult LaunchOne(CUfunction kernel, CUstream stream);

}  // namespace ranktap::standin_test
