// All events on a trace's host threads as torch.profiler nests them. A part of op_summary.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct HostNode {
  enum class Kind : uint8_t { kOperator, kPython, kCall };
  Kind kind = Kind::kOperator;
  bool gone = false;  // one with its parent, which stands for it (RemoveDuplicates)
  uint16_t writer = 0;
  uint32_t row = 0;  // of its table
  uint32_t parent = kNone;
  uint32_t children = 0;
  int64_t start = 0, end = 0;
  int64_t children_ns = 0;
  int64_t own_device_ns = 0;  // of the device work that names it as its cause
  int64_t device_ns = 0;      // and of all nodes inside it
};

// Allocated while a node was open, by anyone.
struct NodeMemory {
  int64_t cpu_bytes = 0, device_bytes = 0;
  int64_t children_cpu_bytes = 0, children_device_bytes = 0;
};

struct OpTree {
  std::vector<HostNode> nodes;     // by start, of equal starts the longer first
  std::vector<NodeMemory> memory;  // by node; empty of a trace without allocations
};

// Names that torch leaves out before it nests.
bool IsHiddenOp(std::string_view name);
std::string_view NameOf(const Trace& trace, const HostNode& node);

OpTree BuildOpTree(const Trace& trace);

}  // namespace ranktap::collector
