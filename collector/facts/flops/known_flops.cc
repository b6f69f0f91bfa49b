#include "collector/facts/flops/known_flops.h"

#include <algorithm>
#include <array>

#include "collector/facts/flops/flop_expression.h"
#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/flops/symbol_sizes.h"

namespace ranktap::collector {
namespace {

// Overloads of aten and prims have a formula or compute elementwise.
bool IsPytorchs(std::string_view name) {
  return name.starts_with("aten::") || name.starts_with("prims::");
}

// They move elements, or make them of nothing.
bool Computes(std::string_view name) {
  static constexpr std::array<std::string_view, 29> kMoves = {"alias",
                                                              "as_strided",
                                                              "cat",
                                                              "clone",
                                                              "constant_pad_nd",
                                                              "copy",
                                                              "copy_",
                                                              "_to_copy",
                                                              "detach",
                                                              "device_put",
                                                              "empty",
                                                              "expand",
                                                              "full",
                                                              "getitem",
                                                              "gather",
                                                              "index",
                                                              "iota",
                                                              "permute",
                                                              "reshape",
                                                              "select",
                                                              "slice",
                                                              "split",
                                                              "split_with_sizes",
                                                              "squeeze",
                                                              "t",
                                                              "transpose",
                                                              "unsqueeze",
                                                              "view",
                                                              "convert_element_type"};
  const std::string_view last = name.substr(name.rfind(':') + 1);
  return std::find(kMoves.begin(), kMoves.end(), last) == kMoves.end();
}

std::optional<FlopCount> CountFused(FlopRule rule, const FusedOperator& op) {
  if (!IsPytorchs(op.name)) return std::nullopt;
  if (const auto count = CountOp(rule, op.name, op.shapes, op.values)) return count;
  // It has a formula, but the file does not say the sizes.
  const bool counts = HasFormula(rule, op.name) || HasFormula(FlopRule::kCounter, op.name);
  return counts ? std::nullopt : std::optional(FlopCount{});
}

std::optional<int64_t> OperationsOf(const FusedOperator& op) {
  if (!IsPytorchs(op.name)) return std::nullopt;
  if (HasFormula(FlopRule::kCounter, op.name)) {
    const auto count = CountOp(FlopRule::kCounter, op.name, op.shapes, op.values);
    return count ? std::optional(count->flops) : std::nullopt;
  }
  if (!Computes(op.name)) return 0;
  int64_t most = -1;
  const OpInputs taken(op.shapes, "");
  for (const Dims& dims : taken.shapes) {
    if (!dims.empty()) most = std::max(most, Product(dims));
  }
  const OpInputs made("[" + op.output + "]", "");
  if (!op.output.empty() && made.shapes.size() == 1) {
    most = std::max(most, Product(made.shapes[0]));
  }
  return most < 0 ? std::nullopt : std::optional(most);
}

// `kernels`: those that a call may have been, in numbers.
template <typename CountOne>
std::optional<int64_t> SumOver(const std::vector<GeneratedKernel>& kernels, CountOne&& count) {
  std::optional<int64_t> of_all;
  for (const GeneratedKernel& kernel : kernels) {
    int64_t sum = 0;
    for (const FusedOperator& op : kernel.operators) {
      const std::optional<int64_t> one = count(op);
      if (!one) return std::nullopt;
      AddCapped(*one, &sum);
    }
    if (kernel.operators.empty() || (of_all && *of_all != sum)) return std::nullopt;
    of_all = sum;
  }
  return of_all;
}

}  // namespace

std::string_view GeneratedName(std::string_view name) {
  if (!name.starts_with("graph_")) return name;
  const size_t end = name.find_first_not_of("0123456789", 6);
  return end == std::string_view::npos || end == 6 || name[end] != '_' ? name
                                                                       : name.substr(end + 1);
}

KnownFlops::KnownFlops(const KnownArithmetic* known) {
  if (known == nullptr) return;
  for (const SaidFlops& said : known->said) said_[said.name] = said.expression;
  for (const GeneratedKernel& kernel : known->generated) {
    generated_[kernel.name].push_back(&kernel);
  }
}

bool KnownFlops::Has(std::string_view name) const {
  return said_.contains(name) || !Kernels(name).empty();
}

const std::vector<const GeneratedKernel*>& KnownFlops::Kernels(std::string_view name) const {
  static const std::vector<const GeneratedKernel*> kNoKernels;
  const auto found = generated_.find(GeneratedName(name));
  return found == generated_.end() ? kNoKernels : found->second;
}

std::vector<GeneratedKernel> KnownFlops::Called(std::string_view name,
                                                std::string_view shapes) const {
  std::vector<GeneratedKernel> called;
  for (const GeneratedKernel* const kernel : Kernels(name)) {
    if (auto sized = WithSizes(*kernel, shapes)) called.push_back(std::move(*sized));
  }
  return called;
}

std::optional<FlopCount> KnownFlops::Of(FlopRule rule, std::string_view name,
                                        std::string_view shapes, std::string_view values) const {
  if (const auto said = said_.find(name); said != said_.end()) {
    const auto flops = EvaluateFlops(said->second, OpInputs(shapes, values));
    return flops ? std::optional(FlopCount{.flops = *flops}) : std::nullopt;
  }
  const std::vector<GeneratedKernel> kernels = Called(name, shapes);
  const auto by = [&](int64_t FlopCount::*part) {
    return SumOver(kernels, [&](const FusedOperator& op) {
      const auto count = CountFused(rule, op);
      return count ? std::optional((*count).*part) : std::nullopt;
    });
  };
  const auto flops = by(&FlopCount::flops), macs = by(&FlopCount::macs);
  if (!flops || !macs) return std::nullopt;
  return FlopCount{.flops = *flops, .macs = *macs};
}

std::optional<int64_t> KnownFlops::Operations(std::string_view name,
                                              std::string_view shapes) const {
  return SumOver(Called(name, shapes), &OperationsOf);
}

}  // namespace ranktap::collector
