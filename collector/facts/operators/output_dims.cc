#include "collector/facts/operators/output_dims.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "collector/facts/flops/convolution_dims.h"

namespace ranktap::collector {
namespace {

// Names without aten:: and without the underscore of those in place.
constexpr std::string_view kAsTheFirstInput =
    " relu relu6 hardtanh hardswish hardsigmoid sigmoid tanh gelu silu mish elu selu celu "
    "leaky_relu "
    "prelu softplus softmax log_softmax _softmax _log_softmax batch_norm layer_norm group_norm "
    "instance_norm native_layer_norm native_batch_norm dropout native_dropout feature_dropout "
    "contiguous clone to _to_copy detach alias rms_norm local_response_norm ";
constexpr std::string_view kBroadcast = " add sub mul div where maximum minimum pow ";

bool Lists(std::string_view names, std::string_view name) {
  return names.find(" " + std::string(name) + " ") != std::string_view::npos;
}

Dims BatchAndChannels(const Dims& x, const Dims& spatial) {
  Dims out(x.begin(), x.begin() + static_cast<ptrdiff_t>(std::min<size_t>(x.size(), 2)));
  out.insert(out.end(), spatial.begin(), spatial.end());
  return out;
}

Dims Convolved(std::string_view name, const OpInputs& in, const Dims& x) {
  const Dims* const w = in.Tensor(1, 3);
  if (w == nullptr || x.size() != w->size()) return {};
  // convolution has the groups two further back, and whether it is a transposed one before them.
  if (name == "convolution" && in.Flag(6, 0, false)) return {};
  Dims out = BatchAndChannels(x, ConvolvedDims(in, x, *w));
  out[1] = w->front();
  return out;
}

Dims Pooled(const OpInputs& in, const Dims& x, bool is_max) {
  if (x.size() < 3) return {};
  const Dims extents = in.Integers(1), stride = in.Integers(2);
  if (extents.empty()) return {};
  return BatchAndChannels(x, PassedDims(x, {.extents = extents,
                                            .stride = stride.empty() ? extents : stride,
                                            .padding = in.Integers(3),
                                            .dilation = is_max ? in.Integers(4) : Dims{},
                                            .rounds_up = in.Flag(is_max ? 5 : 4, 0, false)}));
}

// [.., k] by a weight of [n, k] (`rows_first`), or by [.., k, n].
Dims Multiplied(const OpInputs& in, size_t first, bool rows_first) {
  const Dims* const a = in.Tensor(first, 1);
  const Dims* const b = in.Tensor(first + 1, 2);
  if (a == nullptr || b == nullptr) return {};
  Dims out = *a;
  out.back() = rows_first ? b->front() : b->back();
  return out;
}

Dims Reshaped(const OpInputs& in, const Dims& x) {
  Dims out = in.Integers(1);
  const auto open = std::ranges::find(out, -1);
  if (open == out.end()) return out;
  *open = 1;
  const int64_t rest = Product(out);
  *open = rest > 0 ? Product(x) / rest : 0;
  return out;
}

Dims Flattened(const OpInputs& in, const Dims& x) {
  const auto rank = static_cast<int64_t>(x.size());
  const Dims from_list = in.Integers(1), to_list = in.Integers(2);
  int64_t from = from_list.empty() ? 0 : from_list[0], to = to_list.empty() ? -1 : to_list[0];
  if (from < 0) from += rank;
  if (to < 0) to += rank;
  if (from < 0 || to < from || to >= rank) return {};
  Dims out(x.begin(), x.begin() + from);
  out.push_back(Product(Dims(x.begin() + from, x.begin() + to + 1)));
  out.insert(out.end(), x.begin() + to + 1, x.end());
  return out;
}

Dims Broadcast(const OpInputs& in, const Dims& x) {
  const Dims* const other = in.Tensor(1, 1);
  if (other == nullptr) return x;
  Dims out = x.size() >= other->size() ? x : *other;
  const Dims& less = x.size() >= other->size() ? *other : x;
  for (size_t i = 0; i < less.size(); ++i) {
    int64_t& dim = out[out.size() - 1 - i];
    dim = std::max(dim, less[less.size() - 1 - i]);
  }
  return out;
}

Dims Embedded(const OpInputs& in) {
  const Dims* const rows = in.Tensor(0, 2);
  const Dims* const indices = in.Tensor(1, 1);
  if (rows == nullptr || indices == nullptr) return {};
  Dims out = *indices;
  out.push_back(rows->back());
  return out;
}

}  // namespace

Dims OutputDims(std::string_view name, const OpInputs& in) {
  if (!name.starts_with("aten::")) return {};
  name.remove_prefix(6);
  if (name.ends_with('_')) name.remove_suffix(1);
  const Dims* const x = in.Tensor(0, 1);
  if (x == nullptr) return {};
  if (Lists(kAsTheFirstInput, name)) return *x;
  if (Lists(kBroadcast, name)) return Broadcast(in, *x);
  if (name == "conv1d" || name == "conv2d" || name == "conv3d" || name == "convolution") {
    return Convolved(name, in, *x);
  }
  if (name.starts_with("max_pool")) return Pooled(in, *x, true);
  if (name.starts_with("avg_pool")) return Pooled(in, *x, false);
  if (name.starts_with("adaptive_avg_pool")) {
    const Dims size = in.Integers(1);
    return size.empty() ? Dims{} : BatchAndChannels(*x, size);
  }
  if (name == "linear") return Multiplied(in, 0, true);
  if (name == "addmm") return Multiplied(in, 1, false);
  if (name == "mm" || name == "bmm" || name == "matmul") return Multiplied(in, 0, false);
  if (name == "view" || name == "reshape" || name == "_unsafe_view") return Reshaped(in, *x);
  if (name == "flatten") return Flattened(in, *x);
  return name == "embedding" ? Embedded(in) : Dims{};
}

}  // namespace ranktap::collector
