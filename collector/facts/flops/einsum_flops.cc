#include "collector/facts/flops/einsum_flops.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ranktap::collector {
namespace {

// 2 a multiply-add of [.., m, k] x [.., k, n].
int64_t MatrixProduct(const OpInputs& in) {
  const Dims* const a = in.Tensor(0, 1);
  const Dims* const b = in.Tensor(1, 1);
  return a == nullptr || b == nullptr ? 0 : Product({2, Product(*a), b->back()});
}

int64_t Broadcast(const OpInputs& in) {
  const Dims* const a = in.Tensor(0, 0);
  const Dims* const b = in.Tensor(1, 0);
  if (a == nullptr || b == nullptr) return 0;
  Dims out = a->size() >= b->size() ? *a : *b;
  const Dims& other = a->size() >= b->size() ? *b : *a;
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& size = out[out.size() - other.size() + i];
    size = std::max(size, other[i]);
  }
  return Product(out);
}

// numpy counts one more and prints four digits, which DeepSpeed reads.
int64_t NumpysCount(int64_t flops) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, static_cast<double>(flops) + 1,
                                          std::chars_format::scientific, 3);
  double rounded = 0;
  std::from_chars(text, end, rounded);
  return static_cast<int64_t>(rounded);
}

}  // namespace

OpInputs EinsumCounts::InputsOf(uint32_t row) const {
  return {trace_.dictionary.String(trace_.operators.shapes.At(row)), {}};
}

bool EinsumCounts::Take(uint32_t row) {
  const Operators& ops = trace_.operators;
  const std::string_view name = trace_.dictionary.String(ops.name[row]);
  const uint32_t parent = ops.parent[row];
  around_[row] = parent == kNone ? kNone : around_[parent];
  if (around_[row] == kNone) {
    if (name != "aten::einsum") return false;
    around_[row] = row;
    const std::vector<Dims> operands = InputsOf(row).Tensors(1);
    einsums_[row] = {.operand = operands.size() == 1 ? Product(operands[0]) : 0};
    return true;
  }
  Einsum& einsum = einsums_[around_[row]];
  if (name == "aten::bmm") {
    AddCapped(MatrixProduct(InputsOf(row)), &einsum.flops);
  } else if (name == "aten::mul") {
    AddCapped(Broadcast(InputsOf(row)), &einsum.flops);
  } else if (name == "aten::sum" && einsum.operand != 0 && einsum.flops == 0) {
    const OpInputs in = InputsOf(row);
    if (const Dims* const summed = in.Tensor(0, 1)) einsum.flops = Product({2, Product(*summed)});
  }
  return true;
}

void EinsumCounts::AddTo(std::vector<FlopCount>* counts) const {
  for (const auto& [row, einsum] : einsums_) {
    (*counts)[row].flops = NumpysCount(einsum.flops != 0 ? einsum.flops : einsum.operand);
  }
}

}  // namespace ranktap::collector
