#include "collector/facts/kernel_kinds.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

bool HasAny(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [name](std::string_view part) { return name.find(part) != name.npos; });
}

bool IsConvolution(std::string_view name) {
  return HasAny(name, {"scudnn", "fprop", "dgrad", "wgrad", "onvolve", "::conv::", "winograd"});
}

bool IsProduct(std::string_view name) {
  // Vectors cannot feed tensor cores, and what ends a product is none: "splitKreduce".
  if (HasAny(name, {"gemv", "splitKreduce", "computeOffsets"})) return false;
  // Inductor names what it fuses after a product without the product: "triton_poi_fused_add_mm_3".
  for (const std::string_view pointwise : {"triton_poi_", "triton_red_", "triton_per_"}) {
    if (name.starts_with(pointwise)) return false;
  }
  return HasAny(name, {"gemm", "Cijk_", "matmul", "_mm_", "nvjet"}) || IsConvolution(name);
}

bool UsesTensorCores(std::string_view name) {
  return HasAny(name,
                {"tensorop", "tensor16x8", "wmma", "hmma", "gmma", "s884", "h884", "s1688", "h1688",
                 "s16816", "h16816", "s161616", "i16832", "i8816", "warpgroup", "tf32", "nvjet"});
}

ProductMath MathOf(std::string_view name) {
  if (!IsProduct(name)) return ProductMath::kNone;
  if (UsesTensorCores(name)) return ProductMath::kTensor;
  if (HasAny(name, {"hgemm", "hcudnn"})) return ProductMath::kHalf;
  // cuDNN's older engines are templates of their type.
  if (HasAny(name, {"sgemm", "scudnn", "ffma", "_engine<float", "gemmSN_NN_kernel<float",
                    "gemmSN_TN_kernel<float", "winogradForward<float"})) {
    return ProductMath::kFloat;
  }
  return ProductMath::kUnsaid;
}

uint8_t AlignOf(std::string_view name) {
  const size_t at = name.find("align");
  if (at == name.npos) return 0;
  size_t digits = at + 5;
  if (digits < name.size() && name[digits] == 'c') return 0;  // cuDNN's "alignc4": of a channel
  uint8_t align = 0;
  for (; digits < name.size() && name[digits] >= '0' && name[digits] <= '9' && align < 25; ++digits)
    align = static_cast<uint8_t>(align * 10 + (name[digits] - '0'));
  return align;
}

uint8_t FullAlignOf(std::string_view name) {
  if (HasAny(name, {"i16832", "i8816", "e4m3", "e5m2"})) return 16;
  return HasAny(name, {"bf16", "f16", "fp16", "h16816", "h1688", "h884"}) ? 8 : 4;
}

DeviceArchitecture ArchitectureIn(std::string_view name) {
  if (HasAny(name, {"sm100", "cutlass_100"})) return {10, 0};
  if (HasAny(name, {"sm90", "cutlass_90"})) return {9, 0};
  if (HasAny(name, {"ampere_", "sm80", "cutlass_80"})) return {8, 0};
  if (name.find("turing_") != name.npos) return {7, 5};
  if (name.find("volta_") != name.npos) return {7, 0};
  return {};
}

}  // namespace

KernelKind KindOfKernel(std::string_view name) {
  KernelKind kind;
  kind.math = MathOf(name);
  kind.is_convolution = kind.math != ProductMath::kNone && IsConvolution(name);
  if (kind.math == ProductMath::kTensor) {
    kind.align = AlignOf(name);
    kind.full_align = kind.align == 0 ? 0 : FullAlignOf(name);
    // CUTLASS leaves the type out where it is float: "cutlass_80_tensorop_s1688gemm_128x64".
    kind.is_tf32 = HasAny(name, {"tf32", "tensorop_s1688gemm"});
  }
  kind.changes_layout =
      HasAny(name, {"nchwToNhwc", "nhwcToNchw", "nchw2nhwc", "nhwc2nchw", "nchwToFold"});
  kind.only_moves =
      kind.changes_layout || HasAny(name, {"copy_kernel", "CatArrayBatchedCopy", "ranspose",
                                           "permute", "Relayout", "reshape"});
  kind.is_of_tensor_list = HasAny(name, {"multi_tensor_apply", "foreach"});
  return kind;
}

KernelKinds::KernelKinds(const Trace& trace) {
  kinds_.resize(trace.dictionary.strings() + 1);
  std::vector<bool> known(kinds_.size());
  for (const uint32_t name : trace.kernels.name) {
    if (name >= known.size() || known[name]) continue;
    known[name] = true;
    const std::string readable = ReadableKernelName(trace.dictionary.String(name));
    kinds_[name] = KindOfKernel(readable);
    has_products_ |= kinds_[name].math != ProductMath::kNone;
    has_layout_changes_ |= kinds_[name].changes_layout;
    const DeviceArchitecture named = ArchitectureIn(readable);
    if (std::pair(named.major, named.minor) > std::pair(by_names_.major, by_names_.minor)) {
      by_names_ = named;
    }
  }
  for (const v1::Device& device : trace.hello.devices()) {
    if (device.compute_major() == 0) continue;
    said_.try_emplace(device.id(),
                      DeviceArchitecture{device.compute_major(), device.compute_minor()});
  }
}

DeviceArchitecture KernelKinds::ArchitectureOf(uint32_t device) const {
  const auto said = said_.find(device);
  return said == said_.end() ? by_names_ : said->second;
}

const KernelKinds& KernelKindsOf(const Trace& trace) {
  return trace.memo.Get<KernelKinds>([&trace] { return KernelKinds(trace); });
}

}  // namespace ranktap::collector
