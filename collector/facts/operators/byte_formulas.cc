#include "collector/facts/operators/byte_formulas.h"

#include "collector/facts/flops/convolution_dims.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kFloat = 4, kLong = 8;

Dims DimsOf(const OpTensors& of, size_t index) {
  const Dims* const dims = of.in().Tensor(index, 1);
  return dims == nullptr ? Dims() : *dims;
}

bool HasValue(const OpTensors& of, size_t index) {
  return index < of.in().values.size() && !of.in().values[index].empty();
}

// Elements that are left of input 0 when these axes are gone.
int64_t WithoutAxes(const Dims& x, const Dims& axes) {
  Dims left = x;
  for (int64_t axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(x.size());
    if (axis >= 0 && axis < static_cast<int64_t>(x.size())) left[static_cast<size_t>(axis)] = 1;
  }
  return Product(left);
}

int64_t WithChannels(const Dims& x, const Dims& spatial) {
  return x.size() < 2 ? 0 : Product({x[0], x[1], Product(spatial)});
}

// input, kernel, stride, padding, then dilation and ceil_mode, or ceil_mode.
void Pool(OpTensors& of, bool has_dilation, int64_t index_bytes) {
  of.Read(0);
  const Dims x = DimsOf(of, 0);
  const Dims kernel = of.in().Integers(1);
  if (kernel.empty() || x.size() < 4) {
    of.WriteOutputs();
    return;
  }
  const Dims stride = of.in().Integers(2);
  const int64_t out =
      WithChannels(x, PassedDims(x, {.extents = kernel,
                                     .stride = stride.empty() ? kernel : stride,
                                     .padding = of.in().Integers(3),
                                     .dilation = has_dilation ? of.in().Integers(4) : Dims(),
                                     .rounds_up = of.in().Flag(has_dilation ? 5 : 4, 0, false)}));
  of.WriteElements(out, of.ElementBytes(0));
  if (index_bytes > 0) of.WriteElements(out, index_bytes);
}

}  // namespace

void Fill(OpTensors& of, bool in_place) {
  if (!in_place) of.Read(0);
  of.Write(0);
}

void Copy(OpTensors& of, bool) {
  of.Read(1);
  of.Write(0);
}

void Where(OpTensors& of, bool) {
  for (size_t i = 0; i < 3; ++i) of.Read(i);
  of.WriteElements(of.BroadcastElements(3), of.PromotedBytes(1, 3));
}

// half_to_float is the third input.
void Softmax(OpTensors& of, bool) {
  of.Read(0);
  of.WriteElements(of.Elements(0), of.in().Flag(2, 0, false) ? kFloat : of.ElementBytes(0));
}

// A reduction over all axes, by an empty list as well as by none, leaves one number.
void ReduceTo(OpTensors& of, size_t outputs, int64_t element_bytes) {
  const Dims x = DimsOf(of, 0);
  for (size_t i = 1; i < of.in().shapes.size(); ++i) {
    const std::string_view type = of.TypeOf(i);
    if (type != "ScalarList" && (i != 1 || type != "Scalar")) continue;
    if (!HasValue(of, i)) {
      of.WriteOutputs();
      return;
    }
    const Dims axes = of.in().Integers(i);
    const bool is_order = type == "Scalar" && of.TypeOf(i + 1) == "ScalarList";  // of a norm
    if (is_order || axes.empty()) continue;
    of.WriteElements(Product({static_cast<int64_t>(outputs), WithoutAxes(x, axes)}), element_bytes);
    return;
  }
}

void ReductionWithIndex(OpTensors& of, bool) {
  of.Read(0);
  ReduceTo(of, 1, of.ElementBytes(0) + kLong);
}

// a, b, their scales; in which type the product comes out is not in the inputs' types.
void ScaledProduct(OpTensors& of, bool) {
  for (size_t i = 0; i < 4; ++i) of.Read(i);
  of.WriteOutputs();
}

void Convolution(OpTensors& of, bool) {
  for (size_t i = 0; i < 3; ++i) of.Read(i);
  const Dims x = DimsOf(of, 0), w = DimsOf(of, 1);
  if (x.size() < 3 || w.size() < 3 || !HasValue(of, 6)) {
    of.WriteOutputs();
    return;
  }
  int64_t out = 0;
  if (of.in().Flag(6, 0, false)) {
    const Dims groups = of.in().Integers(8);
    const Dims spatial = TransposedDims(of.in(), x, w, {3, 4, 7, 5});
    out = Product({x[0], w[1], groups.empty() ? 1 : groups[0], Product(spatial)});
  } else {
    out = Product({x[0], w[0], Product(ConvolvedDims(of.in(), x, w))});
  }
  of.WriteElements(out, of.ElementBytes(0));
}

// grad, x, w, bias sizes, ...; input 10 says which gradients are wanted.
void ConvolutionBackward(OpTensors& of, bool) {
  const bool of_x = of.in().Flag(10, 0, true), of_w = of.in().Flag(10, 1, true);
  of.Read(0);
  if (of_w) of.Read(1);
  if (of_x) of.Read(2);
  if (of_x) of.Write(1);
  if (of_w) of.Write(2);
  const Dims grad = DimsOf(of, 0);
  if (grad.size() > 1 && of.in().Flag(10, 2, false)) {
    of.WriteElements(grad[1], of.ElementBytes(0));
  }
}

// q [b, h, sq, d], k, v [b, h, sk, dv], then a mask. Out come [b, h, sq, dv] and the logarithm of
// each row's sum, in 32 bits.
void Attention(OpTensors& of, bool) {
  for (size_t i = 0; i < 4; ++i) of.Read(i);
  const Dims q = DimsOf(of, 0), v = DimsOf(of, 2);
  if (q.size() < 4 || v.size() < 4) return;
  const int64_t rows = Product({q[0], q[1], q[2]});
  of.WriteElements(Product({rows, v[3]}), of.ElementBytes(0));
  of.WriteElements(rows, kFloat);
}

// Gradient of the output, q, k, v, out, sums and, in some, a mask: all but what has no dimensions.
void AttentionBackward(OpTensors& of, bool) {
  for (size_t i = 0; i < 7; ++i) {
    if (of.in().Tensor(i, 3) != nullptr) of.Read(i);
  }
  for (size_t i = 1; i < 4; ++i) of.Write(i);
}

// x, its normalised shape, weight, bias. Out come as much and mean and reciprocal deviation of
// each, in 32 bits.
void LayerNorm(OpTensors& of, bool) {
  for (const size_t i : {0, 2, 3}) of.Read(i);
  of.Write(0);
  const Dims shape = of.in().Integers(1);
  const int64_t length = of.Elements(2) > 0 ? of.Elements(2) : Product(shape);
  if (of.Elements(2) == 0 && shape.empty()) {
    of.WriteOutputs();
  } else if (length > 0) {
    of.WriteElements(Product({2, of.Elements(0) / length}), kFloat);
  }
}

// grad, x, its normalised shape, mean, reciprocal deviation, weight, bias
void LayerNormBackward(OpTensors& of, bool) {
  for (const size_t i : {0, 1, 3, 4, 5}) of.Read(i);
  for (const size_t i : {1, 5, 6}) of.Write(i);
}

// x, weight, bias, N, C, HxW, groups, eps
void GroupNorm(OpTensors& of, bool) {
  for (size_t i = 0; i < 3; ++i) of.Read(i);
  of.Write(0);
  const Dims batch = of.in().Integers(3), groups = of.in().Integers(6);
  if (batch.empty() || groups.empty()) {
    of.WriteOutputs();
  } else {
    of.WriteElements(Product({2, batch[0], groups[0]}), kFloat);
  }
}

// grad, x, mean, reciprocal deviation, weight; a bias has its gradient where a weight has.
void GroupNormBackward(OpTensors& of, bool) {
  for (size_t i = 0; i < 5; ++i) of.Read(i);
  of.Write(1);
  of.Write(4);
  of.Write(4);
}

// x, weight, bias, running mean and variance, training. In training the running ones are written
// too, and mean and reciprocal deviation of the batch come out.
void BatchNorm(OpTensors& of, bool) {
  for (size_t i = 0; i < 5; ++i) of.Read(i);
  of.Write(0);
  if (!of.in().Flag(5, 0, true)) return;
  of.Write(3);
  of.Write(4);
  const Dims x = DimsOf(of, 0);
  if (x.size() > 1) of.WriteElements(2 * x[1], kFloat);
}

void MaxPool(OpTensors& of, bool) { Pool(of, true, kLong); }
void AveragePool(OpTensors& of, bool) { Pool(of, false, 0); }

void AdaptivePool(OpTensors& of, bool) {
  of.Read(0);
  const Dims size = of.in().Integers(1);
  if (size.empty()) {
    of.WriteOutputs();
  } else {
    of.WriteElements(WithChannels(DimsOf(of, 0), size), of.ElementBytes(0));
  }
}

// grad, the forward's input, of which nothing but the shape is asked, ..., indices
void MaxPoolBackward(OpTensors& of, bool) {
  of.Read(0);
  of.Read(7);
  of.Write(1);
}

void AveragePoolBackward(OpTensors& of, bool) {
  of.Read(0);
  of.Write(1);
}

// weight [rows, width], indices
void Embedding(OpTensors& of, bool) {
  const Dims weight = DimsOf(of, 0);
  if (weight.size() < 2) return;
  const int64_t wanted = of.Elements(1);
  of.Read(1);
  of.ReadElements(0, Product({std::min(wanted, weight[0]), weight[1]}));
  of.WriteElements(Product({wanted, weight[1]}), of.ElementBytes(0));
}

// grad [.., width], indices, rows: all rows are written.
void EmbeddingBackward(OpTensors& of, bool) {
  of.Read(0);
  of.Read(1);
  const Dims grad = DimsOf(of, 0), rows = of.in().Integers(2);
  if (rows.empty() || grad.empty()) {
    of.WriteOutputs();
  } else {
    of.WriteElements(Product({rows[0], grad.back()}), of.ElementBytes(0));
  }
}

// self, dim, index
void IndexSelect(OpTensors& of, bool) {
  of.Read(2);
  const Dims self = DimsOf(of, 0);
  Dims dim = of.in().Integers(1);
  if (self.size() == 1) dim = {0};
  if (dim.empty() || self.empty()) {
    of.WriteOutputs();
    return;
  }
  if (dim[0] < 0) dim[0] += static_cast<int64_t>(self.size());
  const int64_t slice = WithoutAxes(self, dim);
  const int64_t wanted = of.Elements(2);
  of.ReadElements(0, std::min(Product({wanted, slice}), of.Elements(0)));
  of.WriteElements(Product({wanted, slice}), of.ElementBytes(0));
}

// self, dim, index
void Gather(OpTensors& of, bool) {
  of.Read(2);
  of.ReadElements(0, std::min(of.Elements(2), of.Elements(0)));
  of.WriteElements(of.Elements(2), of.ElementBytes(0));
}

// self, list of indices: how much they name only the output says.
void Index(OpTensors& of, bool) { of.WriteOutputs(); }

// self, list of indices, values, accumulate
void IndexPut(OpTensors& of, bool) {
  of.Read(2);
  if (of.in().Flag(3, 0, false)) of.ReadElements(0, of.Elements(2));
  of.WriteElements(of.Elements(2), of.ElementBytes(0));
}

void Concatenation(OpTensors& of, bool) {
  of.Read(0);
  of.Write(0);
}

// x, p, train: out come as much and a mask of bytes.
void Dropout(OpTensors& of, bool) {
  of.Read(0);
  of.Write(0);
  of.WriteElements(of.Elements(0), 1);
}

// x [n, classes], target [n]: one number of each row.
void NegativeLogLikelihood(OpTensors& of, bool) {
  of.Read(1);
  of.ReadElements(0, of.Elements(1));
}

// grad, x, target: zeros but for one number of each row.
void NegativeLogLikelihoodBackward(OpTensors& of, bool) {
  of.Read(2);
  of.Write(1);
}

// input, target, ..., reduction at 2 or 3: 0 is none.
void ElementwiseLoss(OpTensors& of, bool) {
  of.Read(0);
  of.Read(1);
  const size_t at = of.in().shapes.size() > 3 && !HasValue(of, 2) ? 3 : 2;
  const Dims reduction = of.in().Integers(at);
  if (reduction.empty()) {
    of.WriteOutputs();
  } else if (reduction[0] == 0) {
    of.Write(0);
  }
}

// Lists of parameters, gradients, both moments and, with amsgrad, the largest second one.
void FusedAdam(OpTensors& of, bool) {
  for (size_t i = 0; i < 5; ++i) {
    if (of.Elements(i) > 0) of.Read(i);
  }
  for (const size_t i : {0, 2, 3, 4}) of.Write(i);
}

// Lists of parameters, gradients and, with momentum, its buffers.
void FusedSgd(OpTensors& of, bool) {
  for (size_t i = 0; i < 3; ++i) {
    if (of.Elements(i) > 0) of.Read(i);
  }
  of.Write(0);
  of.Write(2);
}

void ForeachUnscale(OpTensors& of, bool) {
  of.Read(0);
  of.Write(0);
}

void ForeachNorm(OpTensors& of, bool) { of.Read(0); }

}  // namespace ranktap::collector
