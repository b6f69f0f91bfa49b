// Formulas for the bytes that each family of operators reads and writes. A part of op_bytes.h; the
// names of a family's members stand in op_bytes.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collector/facts/operators/op_tensors.h"

namespace ranktap::collector {

inline void Nothing(OpTensors&, bool) {}

// Reads its first `Arity` inputs, returns their broadcast; in place it reads and writes the first.
template <size_t Arity>
void Elementwise(OpTensors& of, bool in_place) {
  for (size_t i = 0; i < Arity; ++i) of.Read(i);
  if (in_place) {
    of.Write(0);
  } else {
    of.WriteElements(of.BroadcastElements(Arity), of.PromotedBytes(0, Arity));
  }
}

// The same, of which bool comes out.
template <size_t Arity>
void Comparison(OpTensors& of, bool in_place) {
  for (size_t i = 0; i < Arity; ++i) of.Read(i);
  if (in_place) {
    of.Write(0);
  } else {
    of.WriteElements(of.BroadcastElements(Arity), 1);
  }
}

void Fill(OpTensors& of, bool in_place);

// Writes `outputs` numbers of this size for each place that is left of input 0: by its arguments
// (x), (x, dims, keepdim) or (x, order, dims, keepdim).
void ReduceTo(OpTensors& of, size_t outputs, int64_t element_bytes);
// `Bytes`: of what comes out; 0: as of the input.
template <int64_t Bytes>
void Reduction(OpTensors& of, bool) {
  of.Read(0);
  ReduceTo(of, 1, Bytes == 0 ? of.ElementBytes(0) : Bytes);
}
// Values and, where there are dims, their indices.
void ReductionWithIndex(OpTensors& of, bool in_place);

void Copy(OpTensors& of, bool in_place);
void Where(OpTensors& of, bool in_place);
void Softmax(OpTensors& of, bool in_place);

// a [.., m, k] and b [.., k, n] from input `First` on; before them what is added.
template <size_t First>
void MatrixProduct(OpTensors& of, bool) {
  for (size_t i = 0; i < First + 2; ++i) of.Read(i);
  const Dims* const a = of.in().Tensor(First, 1);
  const Dims* const b = of.in().Tensor(First + 1, 1);
  if (a == nullptr || b == nullptr || a->back() == 0) return;
  const int64_t rows = Product(*a) / a->back();
  // A matrix and a vector give a vector, two vectors give a number.
  const int64_t columns = b->size() == 1 ? 1 : b->back();
  if (a->size() > 1) of.WriteElements(Product({rows, columns}), of.ElementBytes(First));
}

void ScaledProduct(OpTensors& of, bool in_place);
void Convolution(OpTensors& of, bool in_place);
void ConvolutionBackward(OpTensors& of, bool in_place);
void Attention(OpTensors& of, bool in_place);
void AttentionBackward(OpTensors& of, bool in_place);

void LayerNorm(OpTensors& of, bool in_place);
void LayerNormBackward(OpTensors& of, bool in_place);
void GroupNorm(OpTensors& of, bool in_place);
void GroupNormBackward(OpTensors& of, bool in_place);
void BatchNorm(OpTensors& of, bool in_place);
// `Data`: which input the forward's is; the gradient is the other of the first two.
template <size_t Data>
void BatchNormBackward(OpTensors& of, bool) {
  for (const size_t i : {0, 1, 2, 5, 6}) of.Read(i);
  of.Write(Data);
  of.Write(2);
  of.Write(2);
}

void MaxPool(OpTensors& of, bool in_place);
void AveragePool(OpTensors& of, bool in_place);
void AdaptivePool(OpTensors& of, bool in_place);
void MaxPoolBackward(OpTensors& of, bool in_place);
void AveragePoolBackward(OpTensors& of, bool in_place);

void Embedding(OpTensors& of, bool in_place);
void EmbeddingBackward(OpTensors& of, bool in_place);
void IndexSelect(OpTensors& of, bool in_place);
void Gather(OpTensors& of, bool in_place);
// self, dim, index, source: to the places that the index names; `Adds`: to what is there.
template <bool Adds>
void Scatter(OpTensors& of, bool in_place) {
  of.Read(2);
  of.Read(3);
  const int64_t places = std::max(of.Elements(2), of.Elements(3));
  if (!in_place) {
    of.Read(0);
    of.Write(0);
    return;
  }
  if (Adds) of.ReadElements(0, std::min(places, of.Elements(0)));
  of.WriteElements(std::min(places, of.Elements(0)), of.ElementBytes(0));
}
void Index(OpTensors& of, bool in_place);
void IndexPut(OpTensors& of, bool in_place);
void Concatenation(OpTensors& of, bool in_place);

void Dropout(OpTensors& of, bool in_place);
void NegativeLogLikelihood(OpTensors& of, bool in_place);
void NegativeLogLikelihoodBackward(OpTensors& of, bool in_place);
void ElementwiseLoss(OpTensors& of, bool in_place);

// Only the record says how large what comes out is; reads its first `Inputs`.
template <size_t Inputs>
void OnlyOutputs(OpTensors& of, bool) {
  for (size_t i = 0; i < Inputs; ++i) of.Read(i);
  of.WriteOutputs();
}

// Its inputs are lists of tensors.
void FusedAdam(OpTensors& of, bool in_place);
void FusedSgd(OpTensors& of, bool in_place);
void ForeachUnscale(OpTensors& of, bool in_place);
void ForeachNorm(OpTensors& of, bool in_place);

}  // namespace ranktap::collector
