#include "collector/facts/flops/op_flops.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "collector/facts/flops/convolution_dims.h"
#include "collector/facts/flops/einsum_flops.h"
#include "collector/facts/flops/known_flops.h"
#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/flops/outputs_by_backward.h"
#include "collector/facts/flops/recurrent_flops.h"
#include "collector/facts/operators/dispatched_again.h"

namespace ranktap::collector {
namespace {

using Count = std::optional<FlopCount>;
using Formula = Count (*)(const OpInputs& in);

FlopCount MultiplyAdds(int64_t macs) { return {.flops = Product({2, macs}), .macs = macs}; }

int64_t Numel(const OpInputs& in, size_t index) {
  const Dims* const shape = in.Tensor(index, 1);
  return shape == nullptr ? 0 : Product(*shape);
}

// [.., m, k] x [.., k, n] with the same leading dimensions; `First`: where the two are.
template <size_t First, size_t Rank>
Count MatrixProduct(const OpInputs& in) {
  const Dims* const a = in.Tensor(First, Rank);
  const Dims* const b = in.Tensor(First + 1, Rank);
  if (a == nullptr || b == nullptr || a->size() != b->size()) return std::nullopt;
  return MultiplyAdds(Product({Product(*a), b->back()}));
}

// x [N, Cin, ...], w [Cout, Cin/groups, ...]; `places`: spatial dimensions where the filter is
// applied.
int64_t ConvolutionMacs(const Dims& x, const Dims& w, const Dims& places) {
  return Product({x[0], Product(places), Product(w)});
}

Dims Spatial(const Dims& shape) { return Dims(shape.begin() + 2, shape.end()); }

Count Convolution(const OpInputs& in) {
  const Dims* const x = in.Tensor(0, 3);
  const Dims* const w = in.Tensor(1, 3);
  if (x == nullptr || w == nullptr || in.values.size() < 7) return std::nullopt;
  const bool transposed = in.Flag(6, 0, false);
  return MultiplyAdds(
      ConvolutionMacs(*x, *w, transposed ? Spatial(*x) : ConvolvedDims(in, *x, *w)));
}

// The inputs are grad, x and w. Each gradient has the shape of the input it belongs to. The
// gradient of the filter is a convolution too, with channels and batch swapped.
Count ConvolutionBackward(const OpInputs& in) {
  const Dims* const grad = in.Tensor(0, 3);
  const Dims* const x = in.Tensor(1, 3);
  const Dims* const w = in.Tensor(2, 3);
  if (grad == nullptr || x == nullptr || w == nullptr) return std::nullopt;
  const bool transposed = in.Flag(7, 0, false);
  int64_t macs = 0;
  if (in.Flag(10, 0, true)) {
    macs += ConvolutionMacs(*grad, *w, Spatial(transposed ? *x : *grad));
  }
  if (in.Flag(10, 1, true)) {
    const Dims& image = transposed ? *grad : *x;
    const Dims& filter = transposed ? *x : *grad;
    // Swapped: batch is the image's channels, the filter's first two are its channels and batch.
    macs += Product({image[1], Product(Spatial(*w)), Product(filter)});
  }
  return MultiplyAdds(macs);
}

// Query [b, h, sq, d], key [b, h, sk, d], value [b, h, sk, dv], from input `First` on; causality
// and masks do not count. `ByKey` and `ByValue`: how many products over d and over dv. The backward
// of fused attention computes the scores again: five products.
template <size_t First, int ByKey, int ByValue>
Count Attention(const OpInputs& in) {
  const Dims* const q = in.Tensor(First, 4);
  const Dims* const k = in.Tensor(First + 1, 4);
  const Dims* const v = in.Tensor(First + 2, 4);
  if (q == nullptr || k == nullptr || v == nullptr) return std::nullopt;
  const int64_t scores = Product({(*q)[0], (*q)[1], (*q)[2], (*k)[2]});
  return MultiplyAdds(Product({scores, ByKey * (*q)[3] + ByValue * (*v)[3]}));
}

// computeFlops knows two spatial dimensions, and groups.
Count ProfilerConvolution(const OpInputs& in) {
  const Dims* const x = in.Tensor(0, 4);
  const Dims* const w = in.Tensor(1, 4);
  const Dims groups = in.Integers(6);
  if (x == nullptr || w == nullptr || x->size() != 4 || w->size() != 4 || groups.size() != 1 ||
      groups[0] <= 0 || in.Integers(3).size() != 2 || in.Integers(4).size() != 2 ||
      in.Integers(5).size() != 2) {
    return std::nullopt;
  }
  const int64_t macs =
      Product({(*x)[0], Product(ConvolvedDims(in, *x, *w)), (*w)[2], (*w)[3], (*x)[1], (*w)[0]});
  return MultiplyAdds(macs / groups[0]);
}

Count Elements(const OpInputs& in) {
  if (in.Tensor(0, 1) == nullptr) return std::nullopt;
  return FlopCount{.flops = Numel(in, 0), .macs = 0};
}

Count ElementsAsMacs(const OpInputs& in) {
  if (in.Tensor(0, 1) == nullptr) return std::nullopt;
  return FlopCount{.flops = Numel(in, 0), .macs = Numel(in, 0)};
}

// `Weight`: where the affine weight is; `Training`: the flag, where there is one.
template <size_t Weight>
Count Normalisation(const OpInputs& in) {
  if (in.Tensor(0, 1) == nullptr) return std::nullopt;
  return FlopCount{.flops = Product({Numel(in, 0), in.Tensor(Weight, 1) != nullptr ? 5 : 4})};
}

Count BatchNorm(const OpInputs& in) {
  if (in.Flag(5, 0, true)) return Normalisation<1>(in);
  if (in.Tensor(0, 1) == nullptr) return std::nullopt;
  return FlopCount{.flops = Product({Numel(in, 0), in.Tensor(1, 1) != nullptr ? 2 : 1})};
}

// input [.., k], weight [n, k]
Count Linear(const OpInputs& in) {
  const Dims* const w = in.Tensor(1, 2);
  if (in.Tensor(0, 1) == nullptr || w == nullptr) return std::nullopt;
  return MultiplyAdds(Product({Numel(in, 0), (*w)[0]}));
}

// Whatever the ranks: all of the first by the last dimension of the second.
Count Matmul(const OpInputs& in) {
  const Dims* const b = in.Tensor(1, 1);
  if (in.Tensor(0, 1) == nullptr || b == nullptr) return std::nullopt;
  return MultiplyAdds(Product({Numel(in, 0), b->back()}));
}

Count AddedMatmul(const OpInputs& in) {
  const Dims* const b = in.Tensor(2, 1);
  if (in.Tensor(1, 1) == nullptr || b == nullptr) return std::nullopt;
  FlopCount count = MultiplyAdds(Product({Numel(in, 1), b->back()}));
  count.flops += Numel(in, 0);
  return count;
}

// conv2d(input, weight, bias, stride, padding, dilation, groups): the bias counts one an output.
Count BiasedConvolution(const OpInputs& in) {
  const Dims* const x = in.Tensor(0, 3);
  const Dims* const w = in.Tensor(1, 3);
  if (x == nullptr || w == nullptr || in.values.size() < 7) return std::nullopt;
  const Dims out = ConvolvedDims(in, *x, *w);
  FlopCount count = MultiplyAdds(ConvolutionMacs(*x, *w, out));
  if (in.Tensor(2, 1) != nullptr) count.flops += Product({(*w)[0], (*x)[0], Product(out)});
  return count;
}

// conv_transpose2d(input, weight [Cin, Cout/groups, ...], bias, stride, padding, output_padding,
// groups, dilation)
Count BiasedTransposed(const OpInputs& in) {
  const Dims* const x = in.Tensor(0, 3);
  const Dims* const w = in.Tensor(1, 3);
  if (x == nullptr || w == nullptr || in.values.size() < 8) return std::nullopt;
  FlopCount count = MultiplyAdds(ConvolutionMacs(*x, *w, Spatial(*x)));
  if (in.Tensor(2, 1) == nullptr) return count;
  const Dims groups = in.Integers(6);
  Dims out = {(*x)[0], (*w)[1], groups.empty() ? 1 : groups[0]};
  for (const int64_t size :
       TransposedDims(in, *x, *w, {.stride = 3, .padding = 4, .extra = 5, .dilation = 7})) {
    out.push_back(size);
  }
  count.flops += Product(out);
  return count;
}

// q [.., sq, d], k [.., sk, d], v [.., sk, dv]
Count FunctionalAttention(const OpInputs& in) {
  const Dims* const q = in.Tensor(0, 2);
  const Dims* const k = in.Tensor(1, 2);
  const Dims* const v = in.Tensor(2, 2);
  if (q == nullptr || k == nullptr || v == nullptr || q->back() == 0) return std::nullopt;
  const int64_t scores = Product({Product(*q) / q->back(), (*k)[k->size() - 2]});
  return MultiplyAdds(Product({scores, q->back() + v->back()}));
}

// interpolate: the spatial size asked for, or all elements times the scale. `Scales`: where it is.
template <size_t Scales>
Count Interpolation(const OpInputs& in) {
  if (in.Tensor(0, 3) == nullptr) return std::nullopt;
  const Dims size = in.Integers(1);
  if (!size.empty()) return FlopCount{.flops = Product(size)};
  auto elements = static_cast<double>(Numel(in, 0));
  for (const double scale : in.Reals(Scales)) elements *= scale;
  constexpr double kMost = 9e18;
  return FlopCount{.flops = elements >= 0 && elements < kMost ? static_cast<int64_t>(elements) : 0};
}

Count Nothing(const OpInputs&) { return FlopCount{}; }

Count ConvolutionOf(std::string_view shapes, const Dims& output) {
  const OpInputs in(shapes, "");
  if (output.size() < 3) return std::nullopt;
  return MultiplyAdds(ConvolutionMacs(in.shapes[0], in.shapes[1], Spatial(output)));
}

bool IsConvolution(std::string_view name) {
  return name == "aten::convolution" || name == "aten::_convolution" ||
         name == "aten::convolution_overrideable";
}

struct Entry {
  std::string_view name;           // without aten::
  std::array<Formula, 4> by_rule;  // in FlopRule's order; nullptr: none
};

constexpr Entry Counter(std::string_view name, Formula formula) {
  return {name, {nullptr, formula}};
}
constexpr Entry DeepSpeed(std::string_view name, Formula formula) {
  return {name, {nullptr, nullptr, formula}};
}

constexpr Entry kFormulas[] = {
    {"mm", {&MatrixProduct<0, 2>, &MatrixProduct<0, 2>, &Matmul}},
    {"addmm", {&MatrixProduct<1, 2>, &MatrixProduct<1, 2>, &AddedMatmul}},
    {"bmm", {&MatrixProduct<0, 3>, &MatrixProduct<0, 3>, &Matmul}},
    {"baddbmm", {&MatrixProduct<1, 3>, &MatrixProduct<1, 3>, &AddedMatmul}},
    {"mul", {&Elements, nullptr, nullptr}},
    {"add", {&Elements, nullptr, nullptr}},
    {"conv2d", {&ProfilerConvolution, nullptr, &BiasedConvolution}},
    Counter("_scaled_mm", &MatrixProduct<0, 2>),
    Counter("convolution", &Convolution),
    Counter("_convolution", &Convolution),
    Counter("convolution_overrideable", &Convolution),
    Counter("convolution_backward", &ConvolutionBackward),
    Counter("_scaled_dot_product_efficient_attention", &Attention<0, 1, 1>),
    Counter("_scaled_dot_product_flash_attention", &Attention<0, 1, 1>),
    Counter("_scaled_dot_product_flash_attention_for_cpu", &Attention<0, 1, 1>),
    Counter("_scaled_dot_product_cudnn_attention", &Attention<0, 1, 1>),
    Counter("_scaled_dot_product_efficient_attention_backward", &Attention<1, 3, 2>),
    Counter("_scaled_dot_product_flash_attention_backward", &Attention<1, 3, 2>),
    Counter("_scaled_dot_product_flash_attention_for_cpu_backward", &Attention<1, 3, 2>),
    Counter("_scaled_dot_product_cudnn_attention_backward", &Attention<1, 3, 2>),
    {"linear", {nullptr, nullptr, &Linear, &Linear}},
    DeepSpeed("matmul", &Matmul),
    DeepSpeed("conv1d", &BiasedConvolution),
    DeepSpeed("conv3d", &BiasedConvolution),
    DeepSpeed("conv_transpose1d", &BiasedTransposed),
    DeepSpeed("conv_transpose2d", &BiasedTransposed),
    DeepSpeed("conv_transpose3d", &BiasedTransposed),
    DeepSpeed("scaled_dot_product_attention", &FunctionalAttention),
    DeepSpeed("relu", &Elements),
    DeepSpeed("relu_", &Elements),
    DeepSpeed("prelu", &Elements),
    DeepSpeed("elu", &Elements),
    DeepSpeed("elu_", &Elements),
    DeepSpeed("leaky_relu", &Elements),
    DeepSpeed("leaky_relu_", &Elements),
    DeepSpeed("relu6", &Elements),
    DeepSpeed("relu6_", &Elements),
    DeepSpeed("silu", &Elements),
    DeepSpeed("silu_", &Elements),
    DeepSpeed("gelu", &Elements),
    {"softmax", {nullptr, nullptr, &Elements, &ElementsAsMacs}},
    DeepSpeed("batch_norm", &BatchNorm),
    DeepSpeed("layer_norm", &Normalisation<2>),
    DeepSpeed("group_norm", &Normalisation<2>),
    DeepSpeed("instance_norm", &Normalisation<1>),
    DeepSpeed("avg_pool1d", &Elements),
    DeepSpeed("avg_pool2d", &Elements),
    DeepSpeed("avg_pool3d", &Elements),
    DeepSpeed("max_pool1d", &Elements),
    DeepSpeed("max_pool2d", &Elements),
    DeepSpeed("max_pool3d", &Elements),
    DeepSpeed("max_pool1d_with_indices", &Elements),
    DeepSpeed("max_pool2d_with_indices", &Elements),
    DeepSpeed("max_pool3d_with_indices", &Elements),
    DeepSpeed("adaptive_avg_pool1d", &Elements),
    DeepSpeed("adaptive_avg_pool2d", &Elements),
    DeepSpeed("adaptive_avg_pool3d", &Elements),
    DeepSpeed("adaptive_max_pool1d", &Elements),
    DeepSpeed("adaptive_max_pool2d", &Elements),
    DeepSpeed("adaptive_max_pool3d", &Elements),
    // Counted as 0, whatever runs inside.
    DeepSpeed("embedding", &Nothing),
    DeepSpeed("dropout", &Nothing),
    DeepSpeed("upsample_nearest1d", &Interpolation<2>),
    DeepSpeed("upsample_nearest2d", &Interpolation<2>),
    DeepSpeed("upsample_nearest3d", &Interpolation<2>),
    DeepSpeed("_upsample_nearest_exact1d", &Interpolation<2>),
    DeepSpeed("_upsample_nearest_exact2d", &Interpolation<2>),
    DeepSpeed("_upsample_nearest_exact3d", &Interpolation<2>),
    DeepSpeed("upsample_linear1d", &Interpolation<3>),
    DeepSpeed("upsample_bilinear2d", &Interpolation<3>),
    DeepSpeed("upsample_trilinear3d", &Interpolation<3>),
    DeepSpeed("upsample_bicubic2d", &Interpolation<3>),
    DeepSpeed("_upsample_bilinear2d_aa", &Interpolation<3>),
    DeepSpeed("_upsample_bicubic2d_aa", &Interpolation<3>),
    DeepSpeed("rnn_tanh", &Recurrent<kRnn>),
    DeepSpeed("rnn_relu", &Recurrent<kRnn>),
    DeepSpeed("gru", &Recurrent<kGru>),
    DeepSpeed("lstm", &Recurrent<kLstm>),
    DeepSpeed("rnn_tanh_cell", &RecurrentCell<kRnn>),
    DeepSpeed("rnn_relu_cell", &RecurrentCell<kRnn>),
    DeepSpeed("gru_cell", &RecurrentCell<kGru>),
    DeepSpeed("lstm_cell", &RecurrentCell<kLstm>),
    DeepSpeed("einsum", &Nothing),  // EinsumCounts adds what is inside
};

// nullptr: the rule has none.
Formula FormulaOf(FlopRule rule, std::string_view name) {
  if (!name.starts_with("aten::")) return nullptr;
  name.remove_prefix(6);
  const auto* const entry = std::find_if(std::begin(kFormulas), std::end(kFormulas),
                                         [name](const Entry& e) { return e.name == name; });
  return entry == std::end(kFormulas) ? nullptr : entry->by_rule[static_cast<size_t>(rule)];
}

}  // namespace

std::optional<FlopCount> CountOp(FlopRule rule, std::string_view name, std::string_view shapes,
                                 std::string_view values) {
  const Formula formula = shapes.empty() ? nullptr : FormulaOf(rule, name);
  return formula == nullptr ? std::nullopt : formula(OpInputs(shapes, values));
}

bool HasFormula(FlopRule rule, std::string_view name) { return FormulaOf(rule, name) != nullptr; }

std::vector<FlopCount> CountFlops(const Trace& trace, FlopRule rule) {
  const Operators& ops = trace.operators;
  OutputsByBackward outputs(trace);
  const std::vector<bool> again =
      rule == FlopRule::kCounter ? DispatchedAgain(trace) : std::vector<bool>(ops.size(), false);
  std::vector<FlopCount> counts(ops.size());
  std::vector<bool> covered(ops.size(), false);  // it, or an operator around it, is counted
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Count> known;  // equal texts have equal ids
  const KnownFlops beside(KnownOf(trace));
  std::optional<EinsumCounts> einsums;
  if (rule == FlopRule::kDeepSpeed) einsums.emplace(trace);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (einsums && einsums->Take(static_cast<uint32_t>(i))) continue;
    const uint32_t parent = ops.parent[i];
    covered[i] = rule != FlopRule::kProfiler && parent != kNone && covered[parent];
    if (covered[i] || again[i]) continue;
    const auto key = std::tuple(ops.name[i], ops.shapes.At(i), ops.values.At(i));
    const auto [at, is_new] = known.try_emplace(key);
    if (is_new) {
      const std::string_view name = trace.dictionary.String(std::get<0>(key)),
                             shapes = trace.dictionary.String(std::get<1>(key)),
                             values = trace.dictionary.String(std::get<2>(key));
      at->second = beside.Has(name) ? beside.Of(rule, name, shapes, values)
                                    : CountOp(rule, name, shapes, values);
      if (!at->second && rule == FlopRule::kCounter && values.empty() && IsConvolution(name)) {
        at->second = ConvolutionOf(shapes, outputs.Of(shapes));
      }
    }
    if (!at->second) continue;
    counts[i] = *at->second;
    covered[i] = true;
  }
  if (einsums) einsums->AddTo(&counts);
  return counts;
}

}  // namespace ranktap::collector
