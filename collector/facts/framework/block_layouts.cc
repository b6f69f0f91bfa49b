#include "collector/facts/framework/block_layouts.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/facts/flops/dtype_sizes.h"
#include "collector/facts/flops/op_inputs.h"

namespace ranktap::collector {

BlockLayouts::BlockLayouts(const Trace& trace) : trace_(trace) {
  for (const TensorUse& use : trace.tensor_uses) uses_[use.memory].push_back(&use);
}

BlockLayouts::Tensor BlockLayouts::TensorOf(const TensorUse& use) const {
  const Operators& ops = trace_.operators;
  const auto text = [&](uint32_t id) { return trace_.dictionary.String(id); };
  const OpInputs side(text((use.is_output ? ops.output_shapes : ops.shapes).At(use.op)),
                      text((use.is_output ? ops.output_types : ops.types).At(use.op)));
  Tensor tensor;
  if (use.place >= side.shapes.size() || use.place >= side.values.size()) return tensor;
  tensor.dtype = side.values[use.place];
  if (tensor.dtype != "TensorList") {
    tensor.sizes = side.shapes[use.place];
    tensor.bytes = BytesPerElement(tensor.dtype) * Product(tensor.sizes);
    return tensor;
  }
  tensor.dtype = {};  // a list's text has none of its tensors
  const std::vector<Dims> list = side.Tensors(use.place);
  if (use.element < list.size()) tensor.sizes = list[use.element];
  return tensor;
}

std::string BlockLayouts::Of(const HeldBlock& block) const {
  const auto uses = uses_.find(block.address);
  if (uses == uses_.end()) return {};
  auto use = std::lower_bound(uses->second.begin(), uses->second.end(), block.start,
                              [](const TensorUse* a, int64_t time) { return a->time < time; });
  for (; use != uses->second.end() && (*use)->time <= block.end; ++use) {
    const Tensor tensor = TensorOf(**use);
    if ((*use)->is_output ? tensor.bytes > block.bytes : tensor.bytes != block.bytes) continue;
    std::string text = "{";
    for (const int64_t size : tensor.sizes) {
      text += (text.size() == 1 ? "" : ",") + std::to_string(size);
    }
    text += "}";
    return tensor.dtype.empty() ? text : fmt::format("{} {}", text, tensor.dtype);
  }
  return {};
}

}  // namespace ranktap::collector
