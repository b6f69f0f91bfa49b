// The values of operators, as the agent wrote them (proto/operator_values.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/trace/execution_trace.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// The inputs or the outputs of one operator. Tensors and storages are addresses yet.
struct RecordedValues {
  int64_t time = 0;  // when it began (inputs) or ended
  uint16_t writer = 0;
  bool are_outputs = false;
  bool knows_overload = false;
  uint32_t thread = 0;  // PyTorch's number
  uint64_t record_function = 0;
  std::string overload;
  std::vector<TraceValue> values;  // of kOther `integer` is the tag
};

// By time, as they were written; what is cut off or not understood is left out.
std::vector<RecordedValues> ReadOperatorValues(const Trace& trace);

}  // namespace ranktap::collector
