// How much arithmetic: sums that end before they overflow.
#pragma once

#include <cstdint>
#include <limits>

namespace ranktap::collector {

struct FlopCount {
  int64_t flops = 0;
  int64_t macs = 0;  // multiply-accumulates; 0 for what is elementwise
};

// Shapes of a file may be anything: a sum ends at a quarter of the largest number, so that passes
// can be added up.
inline void AddCapped(int64_t value, int64_t* sum) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;
  if (__builtin_add_overflow(*sum, value, sum) || *sum > kMost) *sum = kMost;
}

}  // namespace ranktap::collector
