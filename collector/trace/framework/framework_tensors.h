// Tensors of the operators of our own captures: what each took and returned (proto::kTensorPayload,
// proto::kOutputsPayload). One step of loading, after the operators are there and in their order.
#pragma once

#include "collector/trace/model.h"

namespace ranktap::collector {

// Moves the marks of tensors from Trace::marks to Trace::tensor_uses, and gives operators the
// shapes and types of their outputs. A mark whose operator is not in the trace goes without.
void TakeFrameworkTensors(Trace* trace);

}  // namespace ranktap::collector
