// A GPU's peaks from its maker's papers: arithmetic by type and unit, memory, clocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collector/file/result.h"

namespace ranktap::collector {

// The units that compute, by the type they multiply. Tensor cores add up in 32 bits.
enum class ComputeUnit : uint8_t {
  kFp64,        // CUDA cores
  kFp64Tensor,  // tensor cores
  kFp32,        // CUDA cores
  kTf32,        // tensor cores, of 32-bit floats
  kHalf,        // CUDA cores, 16-bit floats
  kHalfTensor,  // tensor cores, fp16 and bf16
  kFp8,         // tensor cores
  kInt8,        // tensor cores
};
inline constexpr size_t kComputeUnits = 8;
// "fp64", "fp64 tensor", "fp32", "tf32", "fp16", "fp16 tensor", "fp8", "int8"
std::string_view NameOf(ComputeUnit unit);

// 0 in any field: no paper says. Arithmetic is dense, without sparsity, at the boost clock.
struct DevicePeaks {
  std::string_view name;  // "A100 SXM 40GB"
  // Words of the device's own name, in small letters, all of which it must have.
  std::array<std::string_view, 3> words;
  int sms = 0;
  // MHz. `tensor_mhz`: at which tensor cores' peaks count, where that is another than boost.
  int base_mhz = 0, boost_mhz = 0, tensor_mhz = 0;
  double bandwidth_gb = 0;     // of the device's memory, GB/s
  double l2_bandwidth_gb = 0;  // GB/s, at the boost clock
  double l2_mib = 0;
  std::array<double, kComputeUnits> tera{};  // FLOP/s, by ComputeUnit
  std::string_view source;

  double flops(ComputeUnit unit) const { return tera[static_cast<size_t>(unit)] * 1e12; }
  double bandwidth() const { return bandwidth_gb * 1e9; }
  // `flops` at another clock of the SMs; 0: not known.
  double FlopsAt(ComputeUnit unit, double mhz) const;
};

// In the order in which a name is looked for: the first that fits is taken.
std::span<const DevicePeaks> AllDevicePeaks();

// By a name as CUDA or a person gives it: "NVIDIA A100-SXM4-80GB", "1080 Ti", "a100". `memory`:
// bytes of the device, which tells sizes apart that the name does not; 0: not known. nullptr: none
// is known of it, as of a MIG instance.
const DevicePeaks* FindDevicePeaks(std::string_view name, uint64_t memory = 0);

// The same for a person: fails with a sentence that names the nearest devices.
Result<const DevicePeaks*> DevicePeaksNamed(std::string_view name);

// FLOP/s of one device by its name and the type of what is multiplied as torch.profiler writes it
// ("float", "c10::BFloat16"). double is on tensor cores where the device does it, float is without
// TF32. 0: the device or the type is not in the table.
double PeakFlops(std::string_view device, std::string_view type);

}  // namespace ranktap::collector
