// An execution trace as PyTorch's ExecutionTraceObserver would have seen it, from a capture of
// `ranktap run --level full --tensors=full`: nodes with their parents, every value of an operator,
// and tensors by numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/trace/model.h"
#include "collector/trace/operator_values.h"

namespace ranktap::collector {

struct TraceNode {
  uint64_t id = 0, parent = 0;
  std::string name;
  std::vector<TraceValue> inputs, outputs;
  uint64_t record_function = 0, forward_parent = 0;
  int64_t sequence = -1;
  uint64_t scope = 7;  // at::RecordScope
  uint64_t thread = 0, forward_thread = 0;
  std::string schema;
  uint32_t op = kNone;         // row of Operators; kNone: a node of none
  int64_t start = 0, end = 0;  // of the operator or label
};

inline constexpr uint64_t kProcessNode = 1;

struct ExecutionTrace {
  // Children before their parents, as they ended; the node of a thread before those in it, that of
  // the process at last.
  std::vector<TraceNode> nodes;
  uint64_t without_values = 0;  // operators whose values were not recorded
};

// The execution trace of the operators that overlap [from, to) (ns of the trace).
ExecutionTrace BuildExecutionTrace(const Trace& trace, int64_t from, int64_t to);

}  // namespace ranktap::collector
