#include "collector/facts/framework/torchstat_rule.h"

#include "collector/facts/operators/output_dims.h"

namespace ranktap::collector {
namespace {

int64_t OfSample(const Dims& dims) { return Product(dims, 1); }

int64_t Elements(const OpInputs& in, size_t index) {
  const Dims* const shape = in.Tensor(index, 1);
  return shape == nullptr ? 0 : Product(*shape);
}

TorchStatCount Convolution(const OpInputs& in, const Dims& x, const Dims& w, const Dims& out) {
  const bool has_bias = in.Tensor(2, 1) != nullptr;
  // Products of one output: the filter's extents by the channels of its group.
  const int64_t products = OfSample(w), outputs = OfSample(out);
  const int64_t parameters = Elements(in, 1) + Elements(in, 2);
  return {.madd = (2 * products - (has_bias ? 0 : 1)) * outputs,
          .flops = Product({out[0], outputs, products + (has_bias ? 1 : 0)}),
          .read = Product({x[0], OfSample(x) + parameters}),
          .written = Product(out)};
}

TorchStatCount Linear(const OpInputs& in, const Dims& x, const Dims& w) {
  const int64_t parameters = Elements(in, 1) + Elements(in, 2);
  return {.madd = w[0] * (2 * x[1] - 1),
          .flops = Product({x[0], x[1], w[0]}),
          .read = Product({x[0], x[1] + parameters}),
          .written = Product({x[0], w[0]})};
}

TorchStatCount BatchNorm(const OpInputs& in, const Dims& x) {
  const bool is_affine = in.Tensor(1, 1) != nullptr;
  return {.madd = 4 * OfSample(x),
          .flops = Product(x) * (is_affine ? 2 : 1),
          .read = Product({x[0], OfSample(x) + 2 * x[1]}),
          .written = Product(x)};
}

TorchStatCount Pool(const OpInputs& in, const Dims& x, const Dims& out, bool is_max) {
  const Dims extents = in.Integers(1);
  const int64_t places = extents.size() == 1 ? extents[0] * extents[0] : Product(extents);
  return {.madd = (is_max ? places - 1 : places) * OfSample(out),
          .flops = Product(x),
          .read = Product(x),
          .written = Product(out)};
}

}  // namespace

std::optional<TorchStatCount> CountByTorchStat(std::string_view name, const OpInputs& in) {
  if (!name.starts_with("aten::")) return std::nullopt;
  const Dims* const x = in.Tensor(0, 2);
  if (x == nullptr) return std::nullopt;
  const Dims out = OutputDims(name, in);
  name.remove_prefix(6);
  if (name.ends_with('_')) name.remove_suffix(1);
  const int64_t all = Product(*x);
  if (name == "relu" || name == "relu6") {
    return TorchStatCount{.madd = OfSample(*x), .flops = all, .read = all, .written = all};
  }
  if (name == "elu" || name == "leaky_relu") {
    return TorchStatCount{.flops = all, .read = all, .written = all};
  }
  if (name == "prelu") {
    return TorchStatCount{
        .flops = all, .read = all + Product({(*x)[0], Elements(in, 1)}), .written = all};
  }
  if (name == "softmax") return TorchStatCount{.madd = 3 * OfSample(*x) - 1};
  const Dims* const w = in.Tensor(1, 2);
  if (name == "linear") {
    // More dimensions fail in torchstat.
    if (w == nullptr || x->size() != 2) return std::nullopt;
    return Linear(in, *x, *w);
  }
  if (x->size() != 4) return std::nullopt;
  if (name == "batch_norm") return BatchNorm(in, *x);
  if (out.size() != 4) return std::nullopt;
  if (name == "conv2d" && w != nullptr) return Convolution(in, *x, *w, out);
  if (name == "max_pool2d") return Pool(in, *x, out, true);
  if (name == "avg_pool2d") return Pool(in, *x, out, false);
  return std::nullopt;
}

}  // namespace ranktap::collector
