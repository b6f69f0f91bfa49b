// Products that PyTorch dispatches twice: autocast, DTensor and tensor subclasses call the same one
// again on what the devices really multiply.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// "[[8], []]" is the beginning of "[[8], [], [8]]": an overload with an output given.
inline bool BeginsAlike(std::string_view outer, std::string_view inner) {
  return inner.starts_with(outer.substr(0, std::max<size_t>(outer.size(), 1) - 1));
}

inline bool IsProductOperator(std::string_view name) {
  for (const std::string_view part : {"mm", "matmul", "linear", "conv", "_scaled_dot_product_"}) {
    if (name.find(part) != name.npos) return name.starts_with("aten::");
  }
  return false;
}

// By row: an operator of the same name runs inside on other shapes or types, which are those that
// count.
inline std::vector<bool> DispatchedAgain(const Trace& trace) {
  constexpr int kLevels = 8;  // a wrapper's are few
  const Operators& ops = trace.operators;
  const auto text = [&trace](uint32_t id) { return trace.dictionary.String(id); };
  std::vector<bool> again(ops.size(), false);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.shapes.At(i) == 0 || !IsProductOperator(text(ops.name[i]))) continue;
    uint32_t around = ops.parent[i];
    for (int level = 0; around != kNone && level < kLevels; around = ops.parent[around], ++level) {
      if (ops.name[around] != ops.name[i]) continue;
      const bool is_same = BeginsAlike(text(ops.shapes.At(around)), text(ops.shapes.At(i))) &&
                           BeginsAlike(text(ops.types.At(around)), text(ops.types.At(i)));
      if (!is_same) again[around] = true;
    }
  }
  return again;
}

}  // namespace ranktap::collector
