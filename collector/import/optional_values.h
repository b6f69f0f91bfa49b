#pragma once

#include <cstddef>

#include "collector/trace/operators.h"

namespace ranktap::collector {

// A value of an optional column, which is as long as its last value that is not 0.
template <typename T, typename Value>
void SetOptional(OptionalColumn<T>* column, size_t row, Value value) {
  if (value == Value{}) return;
  column->PadTo(row);
  column->push_back(static_cast<T>(value));
}

}  // namespace ranktap::collector
