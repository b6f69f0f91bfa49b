// Arrows from the operator that made a tensor to those that take it, from the tensors that
// operators took and returned (Trace::tensor_uses; ranktap run --tensors).
#pragma once

#include <cstdint>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct TensorArrow {
  uint32_t from = 0, to = 0;  // rows of Operators
  uint8_t place = 0;          // of the tensor among the inputs of `to`
  uint16_t element = 0;       // in a list
};

// In the order of time. An input comes from the operator that last returned its tensor, or, where
// one later made or changed the memory that it is a view of, from that one; of operators around
// each other from the outermost that had ended. An operator that only hands to one inside what it
// was given makes that one no arrow of its own. Operators that change what they take, "add_" and
// such, make it. Memory given back is another's from then on, and nothing is known from window to
// window. Empty: the run has no tensors.
const std::vector<TensorArrow>& TensorArrows(const Trace& trace);

}  // namespace ranktap::collector
