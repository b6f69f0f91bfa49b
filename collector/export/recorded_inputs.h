// What Kineto's files say of operators and ours know of runs that recorded every value
// (`run --tensors=full`).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct RecordedInputs {
  // As torch.profiler writes "Input Strides": "[[64, 1], [], [[4, 1], [1]]]". Empty: no inputs.
  std::string strides;
  uint64_t record_function = 0;  // 0: not known
};

// By row of Operators, of annotations too. Empty where no values were recorded.
std::unordered_map<uint32_t, RecordedInputs> FindRecordedInputs(const Trace& trace);

}  // namespace ranktap::collector
