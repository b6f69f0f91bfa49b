// Strides of operators' inputs, of runs that recorded every value (`run --tensors=full`).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "collector/trace/model.h"

namespace ranktap::collector {

// By row of Operators, as torch.profiler writes "Input Strides": "[[64, 1], [], [[4, 1], [1]]]".
// Empty where no values were recorded.
std::unordered_map<uint32_t, std::string> RecordedInputStrides(const Trace& trace);

}  // namespace ranktap::collector
