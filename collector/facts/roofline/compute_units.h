// On which units of a device an operator's arithmetic runs: what its kernels' names say, else what
// the type of its inputs allows.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "collector/facts/kernel_kinds.h"
#include "collector/facts/roofline/device_peaks.h"

namespace ranktap::collector {

// The type of the numbers that are multiplied.
enum class MathType : uint8_t { kNone, kFp64, kFp32, kFp16, kBf16, kFp8, kInt8, kOther };
inline constexpr size_t kMathTypes = 8;
std::string_view NameOf(MathType type);  // "fp64", ...; "other"; "" for kNone
// As operators' inputs name it ("c10::Half").
MathType MathTypeOf(std::string_view type);

// kUnsaid: no kernel's name tells, or none ran; which unit is asked of `type` alone.
enum class UnitKnown : uint8_t { kNone, kUnsaid, kByKernel };
struct MathUnit {
  UnitKnown known = UnitKnown::kNone;
  ComputeUnit unit = ComputeUnit::kFp32;
};

// The arithmetic of a kernel, as its name tells it. `name` is readable.
struct KernelMath {
  ProductMath math = ProductMath::kNone;
  bool is_tf32 = false;
  bool computes() const { return math != ProductMath::kNone; }
};
KernelMath MathOfKernel(std::string_view name);

// `kernels`: of one operator. A silent name means: 16-bit and smaller types on tensor cores, 32-bit
// floats without them (a program asks for TF32), doubles on CUDA cores.
MathUnit UnitOf(MathType type, std::span<const KernelMath> kernels);

}  // namespace ranktap::collector
