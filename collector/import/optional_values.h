#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collector/trace/model.h"
#include "collector/trace/operators.h"

namespace ranktap::collector {

// kNone for what 32 bits do not hold.
inline uint32_t Narrow(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, kNone));
}

// A value of an optional column, which is as long as its last value that is not 0.
template <typename T, typename Value>
void SetOptional(OptionalColumn<T>* column, size_t row, Value value) {
  if (value == Value{}) return;
  column->PadTo(row);
  column->push_back(static_cast<T>(value));
}

}  // namespace ranktap::collector
