// Matrix products that leave the tensor cores idle: 32-bit floats without TF32, or 16-bit ones.
#include <fmt/core.h>

#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/kernel_kinds.h"
#include "collector/facts/roofline/compute_units.h"
#include "collector/report/insights/chosen_work.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfProductMath = 0.02;  // of the step

// What is left off when products move to tensor cores, at their peaks by NVIDIA's data sheets
// (dense): V100 15.7 of 125 TFLOP/s, A100 19.5 of 156 (TF32), H100 67 of 494; A10, A40, L40S half.
double FloatShare(const DeviceArchitecture& device) {
  return device.major == 8 && device.minor != 0 ? 0.5 : 0.875;
}
constexpr std::string_view kOthersUseTf32 = "others of the program use TF32";
constexpr double kHalfShare = 0.75;  // V100 31.4 of 125, A100 78 of 312

// The type of the first input of the innermost operator around it that has types.
MathType OperandsOf(const RankFacts& rank, const DeviceSpan& span) {
  const Operators& ops = rank.trace().operators;
  for (uint32_t op = rank.OperatorOf(span); op != kNone; op = ops.parent[op]) {
    const OpInputs types("", rank.trace().dictionary.String(ops.types.At(op)));
    if (!types.values.empty() && !types.values[0].empty()) return MathTypeOf(types.values[0]);
  }
  return MathType::kNone;
}

struct Products {
  explicit Products(const RankFacts& rank)
      : rank(rank),
        kinds(KernelKindsOf(rank.trace())),
        float_gemms(rank),
        float_convolutions(rank),
        halves(rank) {
    if (!kinds.has_products()) return;
    for (const DeviceSpan& span : rank.spans()) {
      if (span.table == DeviceSpan::Table::kKernel) Add(span);
    }
  }
  bool IsTold() const { return told > 0 || products == 0; }

  const RankFacts& rank;
  const KernelKinds& kinds;
  ChosenWork float_gemms, float_convolutions, halves;
  DeviceArchitecture device;
  bool has_tf32_gemm = false, has_tf32_convolution = false;
  int64_t products = 0, told = 0;

 private:
  bool IsOfFloats(const DeviceSpan& span) const {
    const MathType type = OperandsOf(rank, span);
    return type != MathType::kFp16 && type != MathType::kBf16 && type != MathType::kFp8;
  }
  void Add(const DeviceSpan& span) {
    const KernelKind& kind = kinds.Of(span.name);
    if (kind.math == ProductMath::kNone) return;
    device = kinds.ArchitectureOf(span.device);
    ++products;
    // "float" in a name may be the type that 16-bit floats are summed in.
    const bool is_float = kind.math == ProductMath::kFloat && IsOfFloats(span);
    told += kind.math != ProductMath::kUnsaid && (kind.math != ProductMath::kFloat || is_float);
    if (kind.is_tf32) (kind.is_convolution ? has_tf32_convolution : has_tf32_gemm) = true;
    if (kind.math == ProductMath::kHalf) halves.Add(span);
    if (is_float) {
      (kind.is_convolution ? float_convolutions : float_gemms).Add(span);
    }
  }
};

Answer WhyNot(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  return rank.trace().kernels.size() == 0 ? CannotTell("no kernels are recorded") : Answer{};
}

std::string Sentence(const ChosenWork& work, std::string_view what) {
  return fmt::format("{} kernels {}, {}; most time goes to {}.", work.count(), what, work.Taking(),
                     work.KernelName());
}

void AddTf32Off(const ChosenWork& work, bool has_tf32, std::string_view advice,
                const DeviceArchitecture& device, Answer* answer) {
  if (has_tf32 || !work.IsWorth(kLeastShareOfProductMath)) return;
  Insight insight = work.AsInsight(
      Sentence(work, "multiply 32-bit floats without TF32, and none of their kind uses it"),
      FloatShare(device));
  insight.advice = advice;
  answer->insights.push_back(std::move(insight));
}

// `although`: what says that they need not.
void AddNoTensorCores(const ChosenWork& work, std::string_view although, double share,
                      std::string_view advice, Answer* answer) {
  if (!work.IsWorth(kLeastShareOfProductMath)) return;
  Insight insight = work.AsInsight(
      Sentence(work, fmt::format("multiply without tensor cores, although {}", although)), share);
  insight.advice = advice;
  answer->insights.push_back(std::move(insight));
}

}  // namespace

Answer FindTf32Off(const RankFacts& rank) {
  if (Answer answer = WhyNot(rank); !answer.unknown.empty()) return answer;
  const Products found(rank);
  if (!found.IsTold()) return CannotTell("no product's kernel says which cores it runs on");
  if (found.products > 0 && found.device.major == 0) {
    return CannotTell("the kind of device is not recorded");
  }
  Answer answer;
  if (!found.device.has_tf32()) return answer;
  AddTf32Off(found.float_gemms, found.has_tf32_gemm,
             "Call torch.set_float32_matmul_precision(\"high\"), or use bf16 autocast.",
             found.device, &answer);
  AddTf32Off(found.float_convolutions, found.has_tf32_convolution,
             "Set torch.backends.cudnn.allow_tf32 = True, or use bf16 autocast.", found.device,
             &answer);
  return answer;
}

Answer FindNoTensorCores(const RankFacts& rank) {
  if (Answer answer = WhyNot(rank); !answer.unknown.empty()) return answer;
  const Products found(rank);
  if (!found.IsTold()) return CannotTell("no product's kernel says which cores it runs on");
  if (found.products > 0 && found.device.major == 0) {
    return CannotTell("the kind of device is not recorded");
  }
  Answer answer;
  if (!found.device.has_tensor_cores()) return answer;
  AddNoTensorCores(found.halves, "they multiply 16-bit floats", kHalfShare,
                   "Make the products' dimensions multiples of 8.", &answer);
  if (!found.device.has_tf32()) {
    ChosenWork floats(rank);
    floats.Add(found.float_gemms);
    floats.Add(found.float_convolutions);
    AddNoTensorCores(floats, "the device has them for 16-bit floats", FloatShare(found.device),
                     "Use automatic mixed precision (torch.autocast with float16).", &answer);
    return answer;
  }
  if (found.has_tf32_gemm) {
    AddNoTensorCores(found.float_gemms, kOthersUseTf32, FloatShare(found.device),
                     "Make the products' dimensions multiples of 4, or use bf16 autocast.",
                     &answer);
  }
  if (found.has_tf32_convolution) {
    AddNoTensorCores(found.float_convolutions, kOthersUseTf32, FloatShare(found.device),
                     "Set torch.backends.cudnn.benchmark = True, give layers multiples of 8 "
                     "channels, or use bf16 autocast.",
                     &answer);
  }
  return answer;
}

}  // namespace ranktap::collector
