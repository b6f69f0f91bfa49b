// Matrix products whose rows are no multiple of the 16 bytes that tensor cores are fed with.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "collector/facts/flops/dtype_sizes.h"
#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/kernel_kinds.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/chosen_work.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfOffMultipleShapes = 0.01;  // of the step
constexpr int64_t kRowBytes = 16;
// NVIDIA's guide to matrix multiplication shows up to twice the speed with whole rows.
constexpr double kShare = 0.5;

struct ProductShape {
  int64_t m = 0, k = 0, n = 0;
  std::string_view dtype;
};

// "aten::addmm" takes what is added first.
std::optional<size_t> FirstFactor(std::string_view name) {
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::matmul") return 0;
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::_addmm_activation") {
    return 1;
  }
  return std::nullopt;
}

// The text between the quotes of a JSON list of strings.
std::string_view TextAt(std::string_view list, size_t index) {
  size_t at = list.find('"');
  while (at != list.npos) {
    const size_t end = list.find('"', at + 1);
    if (end == list.npos) return "";
    if (index-- == 0) return list.substr(at + 1, end - at - 1);
    at = list.find('"', end + 1);
  }
  return "";
}

std::optional<ProductShape> ShapeOfOperator(const Trace& trace, uint32_t op) {
  const std::optional<size_t> first =
      FirstFactor(trace.dictionary.String(trace.operators.name[op]));
  const std::string_view shapes = trace.dictionary.String(trace.operators.shapes.At(op));
  if (!first || shapes.empty()) return std::nullopt;
  const OpInputs inputs(shapes, "");
  const Dims* const a = inputs.Tensor(*first, 2);
  const Dims* const b = inputs.Tensor(*first + 1, 2);
  if (a == nullptr || b == nullptr) return std::nullopt;
  return ProductShape{
      .m = (*a)[a->size() - 2],
      .k = a->back(),
      .n = b->back(),
      .dtype = TextAt(trace.dictionary.String(trace.operators.types.At(op)), *first)};
}

// The shape of the product that a kernel was launched for, by the operators around its launch.
std::optional<ProductShape> ShapeOf(const Trace& trace, const DeviceSpan& span) {
  for (uint32_t op = LaunchingOperator(trace, span); op != kNone; op = trace.operators.parent[op]) {
    if (const auto shape = ShapeOfOperator(trace, op)) return shape;
  }
  return std::nullopt;
}

// How many elements a row must be a multiple of; 0: not known.
int64_t MultipleOf(const KernelKind& kind, const std::optional<ProductShape>& shape) {
  if (kind.full_align != 0) return kind.full_align;
  const int64_t bytes = shape ? BytesPerElement(shape->dtype) : 0;
  return bytes == 0 ? 0 : kRowBytes / bytes;
}

// A kernel that says how its loads are aligned knows better than shapes, which may be transposed.
std::optional<bool> IsOff(const KernelKind& kind, const std::optional<ProductShape>& shape) {
  if (kind.align != 0) return kind.align < kind.full_align;
  const int64_t multiple = MultipleOf(kind, shape);
  if (multiple == 0) return std::nullopt;
  return shape->k % multiple != 0 || shape->n % multiple != 0;
}

std::string Evidence(const Trace& trace, const KernelKinds& kinds, const DeviceSpan& longest) {
  const KernelKind& kind = kinds.Of(longest.name);
  const auto shape = ShapeOf(trace, longest);
  const int64_t multiple = MultipleOf(kind, shape);
  if (!shape) {
    return fmt::format("the longest loads {} elements at once instead of {}", kind.align, multiple);
  }
  return fmt::format("the longest multiplies {}x{} by {}x{} ({}), and {} elements are 16 bytes",
                     shape->m, shape->k, shape->k, shape->n, shape->dtype, multiple);
}

}  // namespace

Answer FindOffMultipleShapes(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  const KernelKinds& kinds = KernelKindsOf(rank.trace());
  if (!kinds.has_products()) return {};
  ChosenWork work(rank);
  int64_t products = 0, told = 0;
  for (const DeviceSpan& span : rank.spans()) {
    if (span.table != DeviceSpan::Table::kKernel) continue;
    const KernelKind& kind = kinds.Of(span.name);
    if (kind.math == ProductMath::kNone || kind.is_convolution) continue;
    ++products;
    // Without tensor cores there is nothing to be aligned for.
    told += kind.math == ProductMath::kFloat || kind.math == ProductMath::kHalf ? 1 : 0;
    if (kind.math != ProductMath::kTensor) continue;
    const auto off = IsOff(kind, ShapeOf(rank.trace(), span));
    told += off ? 1 : 0;
    if (off.value_or(false)) work.Add(span);
  }
  if (products > 0 && told == 0) return CannotTell("no shapes of products are recorded");
  if (!work.IsWorth(kLeastShareOfOffMultipleShapes)) return {};
  return {.insights = {work.AsInsight(
              fmt::format("{} products have dimensions that tensor cores cannot load in whole "
                          "steps, {}: {}.",
                          FormatCount(work.count()), work.Taking(),
                          Evidence(rank.trace(), kinds, work.Longest())),
              kShare)}};
}

}  // namespace ranktap::collector
