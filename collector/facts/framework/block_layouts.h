// The tensor in each block of memory, from those that operators returned and took
// (Trace::tensor_uses; ranktap run --tensors).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/facts/framework/memory_blocks.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class BlockLayouts {
 public:
  // The trace must outlive it.
  explicit BlockLayouts(const Trace& trace);

  // "{8,4} float": sizes and dtype of the first tensor that an operator returned in the block,
  // else of the first input that fills it to the byte, for views do not; strides are not known.
  // Empty: there was none.
  std::string Of(const HeldBlock& block) const;

 private:
  struct Tensor {
    std::vector<int64_t> sizes;
    std::string_view dtype;
    int64_t bytes = 0;  // 0: of a dtype that is not known here
  };
  Tensor TensorOf(const TensorUse& use) const;

  const Trace& trace_;
  std::unordered_map<uint64_t, std::vector<const TensorUse*>> uses_;  // by memory, in time
};

}  // namespace ranktap::collector
