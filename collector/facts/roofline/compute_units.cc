#include "collector/facts/roofline/compute_units.h"

#include <algorithm>
#include <array>

namespace ranktap::collector {
namespace {

// Fused attention. For 32-bit floats its names do not say which cores they run on.
bool IsAttention(std::string_view name) {
  for (const std::string_view part : {"flash_fwd", "flash_bwd", "FlashAttn", "fmha", "_sdpa_"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

ComputeUnit OnTensorCores(MathType type) {
  switch (type) {
    case MathType::kFp64:
      return ComputeUnit::kFp64Tensor;
    case MathType::kFp32:
      return ComputeUnit::kTf32;
    case MathType::kFp8:
      return ComputeUnit::kFp8;
    case MathType::kInt8:
      return ComputeUnit::kInt8;
    default:
      return ComputeUnit::kHalfTensor;
  }
}

ComputeUnit ByType(MathType type) {
  if (type == MathType::kFp64) return ComputeUnit::kFp64;
  return type == MathType::kFp32 ? ComputeUnit::kFp32 : OnTensorCores(type);
}

bool IsHalf(MathType type) { return type == MathType::kFp16 || type == MathType::kBf16; }

}  // namespace

std::string_view NameOf(MathType type) {
  constexpr std::array<std::string_view, kMathTypes> kNames = {"",     "fp64", "fp32", "fp16",
                                                               "bf16", "fp8",  "int8", "other"};
  return kNames[static_cast<size_t>(type)];
}

MathType MathTypeOf(std::string_view type) {
  if (type == "double") return MathType::kFp64;
  if (type == "float") return MathType::kFp32;
  if (type == "c10::Half") return MathType::kFp16;
  if (type == "c10::BFloat16") return MathType::kBf16;
  if (type == "signed char" || type == "unsigned char") return MathType::kInt8;
  return type.starts_with("c10::Float8") ? MathType::kFp8 : MathType::kOther;
}

KernelMath MathOfKernel(std::string_view name) {
  const KernelKind kind = KindOfKernel(name);
  if (kind.math != ProductMath::kNone) return {.math = kind.math, .is_tf32 = kind.is_tf32};
  return IsAttention(name) ? KernelMath{.math = ProductMath::kUnsaid} : KernelMath{};
}

MathUnit UnitOf(MathType type, std::span<const KernelMath> kernels) {
  if (type == MathType::kNone || type == MathType::kOther) return {};
  const auto any = [kernels](ProductMath math) {
    return std::ranges::any_of(kernels, [math](const KernelMath& of) { return of.math == math; });
  };
  if (any(ProductMath::kTensor)) return {UnitKnown::kByKernel, OnTensorCores(type)};
  if (any(ProductMath::kHalf)) return {UnitKnown::kByKernel, ComputeUnit::kHalf};
  // Of 16-bit floats "float" in a name may be the type that they are summed in.
  if (any(ProductMath::kFloat) && !IsHalf(type)) {
    return {UnitKnown::kByKernel, ComputeUnit::kFp32};
  }
  // Attention of 16 bits has kernels for tensor cores only.
  if (IsHalf(type) && (any(ProductMath::kUnsaid) || any(ProductMath::kFloat))) {
    return {UnitKnown::kUnsaid, ComputeUnit::kHalfTensor};
  }
  return {UnitKnown::kUnsaid, ByType(type)};
}

}  // namespace ranktap::collector
