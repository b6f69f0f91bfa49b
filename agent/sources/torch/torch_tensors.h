// The tensors that an operator takes and returns: a mark for each (proto::kTensorPayload).
// Runs on: threads that run operators.  May not: allocate, lock, wait.
#pragma once

#include <cstdint>
#include <string>

#include "agent/core/writer.h"
#include "agent/sources/torch/torch_values.h"

namespace ranktap::agent {

enum class TensorSide : uint8_t { kInput, kOutput };

// Marks in `domain` at `ticks`. Undefined tensors and those without memory have none.
void EmitTensors(ThreadState& thread, const TorchInputs& values, TensorSide side,
                 proto::ArenaRef domain, uint64_t ticks);

// A sentence on the tensors since the last call that were too many; empty: none. While no operator
// is observed.
std::string TakeTensorsLeftOut();

}  // namespace ranktap::agent
