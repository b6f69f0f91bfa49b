// The kernels that calibrate runs on a GPU, as nvcc compiled them for each architecture.
#pragma once

#include <span>
#include <string_view>

namespace ranktap::collector {

// One kernel of device_kernels.cu.
struct DeviceKernel {
  const char* name;                    // "ranktap_tensor_bf16"
  std::string_view type, instruction;  // as DeviceRoofs::Arithmetic
  double flops_a_block;                // in one round
  bool is_lower_bound = false;
};

// For devices of one kind.
struct DeviceCode {
  std::string_view architecture;  // "sm_90a"
  int major;
  bool is_of_minor_0;      // alone; else of every minor
  std::string_view image;  // a cubin; empty where nvcc was absent
  std::span<const DeviceKernel> kernels;
};

inline constexpr int kDeviceThreads = 256;  // of a block
inline constexpr const char* kCopyKernel = "ranktap_copy";
inline constexpr const char* kReadKernel = "ranktap_read";
inline constexpr uint64_t kReadBytesOfBlock = uint64_t{kDeviceThreads} * 8 * 16;
inline constexpr const char* kEmptyKernel = "ranktap_nothing";

std::span<const DeviceCode> AllDeviceCode();
// nullptr: none was built for such a device.
const DeviceCode* DeviceCodeFor(int major, int minor);
// False: this build had no nvcc, and every image is empty.
bool HasDeviceCode();

}  // namespace ranktap::collector
