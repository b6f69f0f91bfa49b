// How large what comes out of an operator is, where the record does not say.
#pragma once

#include <string_view>

#include "collector/facts/flops/op_inputs.h"

namespace ranktap::collector {

// Knows the operators that layers are made of: convolutions, products, norms, pooling, activations,
// embeddings, reshaping. Empty: not of this operator, or not from these inputs.
Dims OutputDims(std::string_view name, const OpInputs& in);

}  // namespace ranktap::collector
