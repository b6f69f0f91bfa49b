// Recurrent layers and cells by DeepSpeed's rule (_rnn_flops of its profiler). A part of
// op_flops.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collector/facts/flops/flop_count.h"
#include "collector/facts/flops/op_inputs.h"

namespace ranktap::collector {

// One layer in one direction, for one position of one sequence: weights [gates * hidden, ..] of the
// input and of the state. Elementwise: operations a hidden unit beside the products.
struct Recurrence {
  int64_t gates, elementwise;
};
inline constexpr Recurrence kRnn = {1, 1}, kGru = {3, 7}, kLstm = {4, 10};

inline int64_t RecurrentLayer(const Recurrence& kind, const Dims& input, const Dims& state) {
  int64_t flops = 0;
  for (const Dims* const w : {&input, &state})
    AddCapped(Product({2, Product(*w)}) - (*w)[0], &flops);
  AddCapped(Product({input[0] / kind.gates, kind.elementwise}), &flops);
  return flops;
}

// input [a, b, features]; its third input lists weights and biases of each layer and direction: of
// the input, of the state and, where there is one, of the projection, which DeepSpeed leaves out.
template <const Recurrence& Kind>
std::optional<FlopCount> Recurrent(const OpInputs& in) {
  const Dims* const x = in.Tensor(0, 3);
  if (x == nullptr) return std::nullopt;
  int64_t flops = 0;
  const Dims* of_input = nullptr;
  const std::vector<Dims> parameters = in.Tensors(2);
  for (const Dims& w : parameters) {
    if (w.size() == 1) AddCapped(w[0], &flops);
    if (w.size() != 2) continue;
    if (of_input == nullptr) {
      if (w[0] % Kind.gates == 0) of_input = &w;
    } else {
      if (w[0] != (*of_input)[0]) return std::nullopt;
      AddCapped(RecurrentLayer(Kind, *of_input, w), &flops);
      of_input = nullptr;
    }
  }
  return FlopCount{.flops = Product({(*x)[0], (*x)[1], flops})};
}

// input [batch, features], state, weights, biases
template <const Recurrence& Kind>
std::optional<FlopCount> RecurrentCell(const OpInputs& in) {
  const Dims* const x = in.Tensor(0, 2);
  const Dims* const of_input = in.Tensor(2, 2);
  const Dims* const of_state = in.Tensor(3, 2);
  if (x == nullptr || of_input == nullptr || of_state == nullptr) return std::nullopt;
  int64_t flops = RecurrentLayer(Kind, *of_input, *of_state);
  for (const size_t bias : {4, 5}) {
    if (const Dims* const b = in.Tensor(bias, 1)) AddCapped((*b)[0], &flops);
  }
  return FlopCount{.flops = Product({(*x)[0], flops})};
}

}  // namespace ranktap::collector
