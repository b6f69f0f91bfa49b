// Outputs of convolutions whose strides are not recorded. A part of op_flops.h.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "collector/facts/flops/op_inputs.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Where strides are not recorded, a convolution's output has the shape of the gradient that its
// backward got: by the texts of image and filter, "[8, 3, 32, 32], [16, 3, 3, 3]".
class OutputsByBackward {
 public:
  explicit OutputsByBackward(const Trace& trace) : trace_(trace) {}

  // Empty: not known.
  Dims Of(std::string_view shapes) {
    if (!known_) Find();
    const OpInputs in(shapes, "");
    const Dims* const x = in.Tensor(0, 3);
    const Dims* const w = in.Tensor(1, 3);
    if (x == nullptr || w == nullptr) return {};
    const auto found = outputs_.find({*x, *w});
    return found == outputs_.end() ? Dims{} : found->second;
  }

 private:
  void Find() {
    known_ = true;
    const Operators& ops = trace_.operators;
    std::set<uint32_t> seen;  // texts
    for (size_t i = 0; i < ops.size(); ++i) {
      if (trace_.dictionary.String(ops.name[i]) != "aten::convolution_backward") continue;
      if (!seen.insert(ops.shapes.At(i)).second) continue;
      const OpInputs in(trace_.dictionary.String(ops.shapes.At(i)), "");
      const Dims* const grad = in.Tensor(0, 3);
      const Dims* const x = in.Tensor(1, 3);
      const Dims* const w = in.Tensor(2, 3);
      if (grad == nullptr || x == nullptr || w == nullptr) continue;
      // A transposed one has its channels the other way round, and is counted at its input.
      const bool is_plain = (*grad)[1] == (*w)[0] && (*grad)[0] == (*x)[0];
      const auto [at, is_new] = outputs_.try_emplace({*x, *w}, is_plain ? *grad : Dims{});
      if (!is_new && at->second != *grad) at->second.clear();  // of two strides
    }
  }

  const Trace& trace_;
  bool known_ = false;
  std::map<std::pair<Dims, Dims>, Dims> outputs_;
};

}  // namespace ranktap::collector
