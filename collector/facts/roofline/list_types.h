// How large the elements of lists of tensors are, which operators' texts do not say ("TensorList").
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// Bytes of an element that a kernel of lists works on, by its readable name: of "OpaqueType<4u>" 4,
// of "BinaryOpListAlphaFunctor<float, 2, 2, 0>" 4. 0: it does not say, or says several.
int64_t ListElementBytes(std::string_view kernel);

// By row of Operators; 0: not known. From the names of the kernels that an operator of lists
// launched; for optimizers' without kernels from the model, where all of its parameters, gradients
// and states are of one type.
std::vector<int64_t> ListElementBytes(const Trace& trace);

}  // namespace ranktap::collector
