// An operator's inputs and outputs, value by value: proto/operator_values.h.
// Runs on: threads that run operators.  May not: allocate, lock, wait.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/core/writer.h"
#include "agent/sources/torch/torch_tensors.h"
#include "agent/sources/torch/torch_values.h"

namespace ranktap::agent {

struct OperatorValues {
  const void* function = nullptr;  // at::RecordFunction
  const char* name = nullptr;
  TorchInputs values;
  TensorSide side = TensorSide::kInput;
  uint64_t ticks = 0;
};

// Looks for what it needs of PyTorch and names the marks; while no operator is observed.
void PrepareValues(proto::ArenaRef domain, const TorchLayout& layout);
// One operator's, on its thread. `function` has not ended.
void EmitValues(ThreadState& thread, const OperatorValues& values);

// Names and overloads of the operators since the last call, "aten::mm\nout" (no second line: the
// overload is not known), then '\0'. While no operator is observed; allocates.
std::string TakeOperatorNames();
// A sentence about what the values of this PyTorch lack; empty: nothing.
std::string ValuesNotFound();

}  // namespace ranktap::agent
