// One block of a framework's allocator, from its allocation to its release.
#pragma once

#include <cstdint>
#include <limits>

#include "collector/trace/model.h"

namespace ranktap::collector {

inline constexpr uint16_t kAnyWriter = std::numeric_limits<uint16_t>::max();
inline constexpr int64_t kNeverFreed = std::numeric_limits<int64_t>::max();

struct MemoryBlock {
  int64_t start = 0, end = kNeverFreed;
  int64_t bytes = 0;
  uint64_t address = 0;
  uint32_t stack = 0;            // Dictionary::String: of its allocation; 0: not known
  uint16_t writer = kAnyWriter;  // kAnyWriter: which thread allocated it is not known
  uint8_t device = 0;            // 0: CPU, 1 + index: CUDA
  bool preexisting = false;
  char told = 0;       // proto::kParameterKind and so on; 0: the program did not say
  uint32_t owner = 0;  // Dictionary::String: the tensor, or the module it was allocated in
};

}  // namespace ranktap::collector
