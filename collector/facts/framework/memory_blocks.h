// The framework's allocations as blocks, from allocation to release, in the program's places.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct HeldBlock {
  int64_t start = 0, end = 0;  // end: of the trace, where it was not seen to go
  bool alive = false;          // it was not seen to go
  int64_t bytes = 0;
  uint64_t address = 0;
  uint32_t row = 0;     // of Trace::allocations, that of its allocation
  uint32_t op = kNone;  // row of the operator that allocated it
  MemoryCategory category = MemoryCategory::kUnknown;
  // The module that its tensor belongs to, or whose operator allocated it; else empty.
  std::string module;
};

struct DeviceMemory {
  uint32_t device = kNone;        // kNone: the CPU
  std::vector<HeldBlock> blocks;  // by start
  int64_t peak = 0, peak_time = 0;
};

// By device, the CPU last. Empty: no allocations, or none with addresses (memory timelines).
// Worked out once and kept in the trace's memo.
const std::vector<DeviceMemory>& HeldMemory(const Trace& trace);

// "parameter", "optimizer state", ...
std::string CategoryName(MemoryCategory category);
inline constexpr size_t kMemoryCategories = static_cast<size_t>(MemoryCategory::kUnknown) + 1;

// The device that a row is about; kNone: the CPU, or not named.
uint32_t MemoryDeviceOf(const Allocations& all, size_t row);

}  // namespace ranktap::collector
