#include "collector/facts/operators/op_bytes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "collector/facts/operators/byte_formulas.h"
#include "collector/facts/operators/dispatched_again.h"
#include "collector/facts/operators/op_tensors.h"

namespace ranktap::collector {
namespace {

using ByteFormula = void (*)(OpTensors& of, bool in_place);

struct Family {
  ByteFormula formula;
  std::string_view names;  // without aten:: and without the underscore of those in place
};

// Views, allocations and questions.
constexpr std::string_view kMovesNothing =
    "view _unsafe_view _reshape_alias as_strided t transpose permute expand expand_as "
    "view_as squeeze unsqueeze select slice narrow split split_with_sizes chunk unbind "
    "detach alias diagonal unfold movedim swapaxes view_as_real view_as_complex real imag "
    "resolve_conj resolve_neg lift_fresh empty empty_like empty_strided new_empty "
    "new_empty_strided resize resize_as set result_type item is_nonzero _local_scalar_dense "
    "size stride numel broadcast_tensors unsafe_split unsafe_chunk tensor_split unflatten mT "
    "mH adjoint is_pinned record_stream can_cast dim _has_compatible_shallow_copy_type "
    "set_data requires_grad retain_grad lift promote_types unsafe_split_with_sizes";

constexpr Family kFamilies[] = {
    {&Elementwise<1>,
     "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan tanh "
     "sinh cosh asin acos atan erf erfc erfinv sigmoid relu relu6 silu mish gelu elu selu "
     "celu leaky_relu hardtanh hardswish hardsigmoid softplus logit log_sigmoid_forward "
     "square sign floor ceil round trunc frac pow clamp clamp_min clamp_max threshold "
     "bitwise_not nan_to_num tril triu cumsum cumprod flip roll softshrink hardshrink "
     "positive special_erfcx sgn deg2rad rad2deg digamma lgamma clip"},
    {&Elementwise<2>,
     "add sub mul div rsub maximum minimum fmod remainder floor_divide atan2 bitwise_and "
     "bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift __lshift__ __rshift__ "
     "copysign hypot xlogy fmax fmin true_divide prelu sigmoid_backward tanh_backward "
     "threshold_backward gelu_backward silu_backward elu_backward leaky_relu_backward "
     "hardtanh_backward hardswish_backward hardsigmoid_backward softplus_backward "
     "logit_backward _softmax_backward_data _log_softmax_backward_data "
     "native_dropout_backward _masked_scale masked_fill logaddexp mish_backward "
     "log_sigmoid_backward __and__ __or__ __xor__ softshrink_backward"},
    {&Elementwise<3>,
     "addcmul addcdiv lerp mse_loss_backward smooth_l1_loss_backward huber_loss_backward "
     "prelu_kernel_backward"},
    {&Comparison<1>, "logical_not isnan isinf isfinite isneginf isposinf signbit"},
    {&Comparison<2>, "eq ne lt le gt ge logical_and logical_or logical_xor isin"},
    {&Fill, "zero fill normal uniform bernoulli random exponential log_normal geometric cauchy"},
    {&Reduction<0>,
     "sum nansum mean prod amax amin std var norm linalg_vector_norm logsumexp nanmean"},
    {&Reduction<1>, "any all"},
    {&Reduction<8>, "argmax argmin count_nonzero"},
    {&ReductionWithIndex, "max min median"},
    {&Copy, "copy"},
    {&Where, "where"},
    {&Softmax, "_softmax _log_softmax"},
    {&MatrixProduct<0>, "mm bmm mv dot"},
    {&ScaledProduct, "_scaled_mm"},
    {&MatrixProduct<1>, "addmm baddbmm addmv _addmm_activation"},
    {&Convolution, "convolution _convolution convolution_overrideable"},
    {&ConvolutionBackward, "convolution_backward"},
    {&Attention,
     "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
     "_scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention_for_cpu"},
    {&AttentionBackward,
     "_scaled_dot_product_flash_attention_backward "
     "_scaled_dot_product_efficient_attention_backward "
     "_scaled_dot_product_cudnn_attention_backward "
     "_scaled_dot_product_flash_attention_for_cpu_backward"},
    {&LayerNorm, "native_layer_norm _fused_rms_norm"},
    {&LayerNormBackward, "native_layer_norm_backward"},
    {&GroupNorm, "native_group_norm"},
    {&GroupNormBackward, "native_group_norm_backward"},
    {&BatchNorm, "native_batch_norm cudnn_batch_norm miopen_batch_norm"},
    {&BatchNormBackward<1>, "native_batch_norm_backward"},
    {&BatchNormBackward<0>, "cudnn_batch_norm_backward miopen_batch_norm_backward"},
    {&MaxPool, "max_pool2d_with_indices max_pool3d_with_indices"},
    {&AveragePool, "avg_pool2d avg_pool3d"},
    {&AdaptivePool, "_adaptive_avg_pool2d _adaptive_avg_pool3d"},
    {&MaxPoolBackward, "max_pool2d_with_indices_backward max_pool3d_with_indices_backward"},
    {&AveragePoolBackward,
     "avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d_backward "
     "_adaptive_avg_pool3d_backward"},
    {&Embedding, "embedding"},
    {&EmbeddingBackward, "embedding_dense_backward"},
    {&IndexSelect, "index_select"},
    {&Gather, "gather"},
    {&Scatter<false>, "scatter"},
    {&Scatter<true>, "scatter_add scatter_reduce index_add"},
    {&IndexPut, "_index_put_impl"},
    {&Index, "index"},
    {&Concatenation, "cat"},
    {&Dropout, "native_dropout _fused_dropout"},
    {&NegativeLogLikelihood, "nll_loss_forward nll_loss2d_forward"},
    {&NegativeLogLikelihoodBackward, "nll_loss_backward nll_loss2d_backward"},
    {&ElementwiseLoss, "mse_loss smooth_l1_loss huber_loss binary_cross_entropy"},
    {&OnlyOutputs<0>, "arange range linspace randperm eye _fft_r2c _fft_c2c"},
    {&OnlyOutputs<1>,
     "topk sort constant_pad_nd upsample_nearest1d upsample_nearest2d "
     "upsample_linear1d upsample_bilinear2d upsample_bicubic2d"},
    {&FusedAdam, "_fused_adam _fused_adamw"},
    {&FusedSgd, "_fused_sgd"},
    {&ForeachUnscale, "_amp_foreach_non_finite_check_and_unscale"},
    {&ForeachNorm, "_foreach_norm _foreach_max"},
    {&Fill, "_foreach_zero"},
    {&Copy, "_foreach_copy"},
    {&Elementwise<1>,
     "_foreach_sqrt _foreach_neg _foreach_abs _foreach_reciprocal _foreach_sign _foreach_exp "
     "_foreach_log _foreach_rsqrt _foreach_clamp_min _foreach_clamp_max _foreach_pow"},
    {&Elementwise<2>,
     "_foreach_add _foreach_sub _foreach_mul _foreach_div _foreach_maximum _foreach_minimum"},
    {&Elementwise<3>, "_foreach_addcmul _foreach_addcdiv _foreach_lerp"},
};

using ByName = std::unordered_map<std::string_view, ByteFormula>;

void AddNames(std::string_view names, ByteFormula formula, ByName* to) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    to->emplace(names.substr(0, end), formula);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

const ByName& Formulas() {
  static const ByName* const kFormulas = [] {
    auto* const formulas = new ByName();
    AddNames(kMovesNothing, &Nothing, formulas);
    for (const Family& family : kFamilies) AddNames(family.names, family.formula, formulas);
    return formulas;
  }();
  return *kFormulas;
}

}  // namespace

ByteCount CountBytes(const OpSignature& op) {
  if (!op.name.starts_with("aten::")) return {};
  std::string_view name = op.name.substr(6);
  const bool in_place = name.ends_with('_') && !name.ends_with("__");
  if (in_place) name.remove_suffix(1);
  const auto found = Formulas().find(name);
  if (found == Formulas().end()) return {};
  if (found->second == &Nothing) return {.known = BytesKnown::kExactly};
  if (op.shapes.empty()) return {.known = BytesKnown::kNoShapes};
  OpTensors of(op);
  found->second(of, in_place);
  return of.Counted(in_place);
}

std::vector<ByteCount> CountBytes(const Trace& trace,
                                  const std::vector<int64_t>& list_element_bytes) {
  const Operators& ops = trace.operators;
  std::vector<ByteCount> counts(ops.size());
  std::vector<bool> covered(ops.size(), false);  // it, or an operator around it, is counted
  const std::vector<bool> again = DispatchedAgain(trace);
  using Key =
      std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, int64_t>;
  std::map<Key, ByteCount> known;  // equal texts have equal ids
  const auto text = [&trace](uint32_t id) { return trace.dictionary.String(id); };
  for (size_t i = 0; i < ops.size(); ++i) {
    const uint32_t parent = ops.parent[i];
    covered[i] = parent != kNone && covered[parent];
    if (covered[i] || again[i]) continue;
    const int64_t of_list = i < list_element_bytes.size() ? list_element_bytes[i] : 0;
    const Key key(ops.name[i], ops.shapes.At(i), ops.strides.At(i), ops.types.At(i),
                  ops.values.At(i), ops.output_shapes.At(i), ops.output_types.At(i), of_list);
    const auto [at, is_new] = known.try_emplace(key);
    if (is_new) {
      at->second = CountBytes({.name = text(ops.name[i]),
                               .shapes = text(ops.shapes.At(i)),
                               .strides = text(ops.strides.At(i)),
                               .types = text(ops.types.At(i)),
                               .values = text(ops.values.At(i)),
                               .output_shapes = text(ops.output_shapes.At(i)),
                               .output_types = text(ops.output_types.At(i)),
                               .list_element_bytes = of_list});
    }
    counts[i] = at->second;
    covered[i] = counts[i].is_counted();
  }
  return counts;
}

}  // namespace ranktap::collector
