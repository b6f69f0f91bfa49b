// The framework's operator around a moment of a thread, and the time of operators without those
// inside them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// How much of [start, end) lies in the operator.
inline int64_t TimeIn(const Operators& ops, uint32_t op, int64_t start, int64_t end) {
  return std::max<int64_t>(std::min(end, ops.end[op]) - std::max(start, ops.start[op]), 0);
}

// By row: its time without the operators inside it. `counts(row)`: whether it is one; those that
// are not are looked through.
template <typename Counts>
std::vector<int64_t> OwnTimes(const Operators& ops, Counts&& counts) {
  std::vector<int64_t> own(ops.size());
  for (uint32_t op = 0; op < ops.size(); ++op) {
    own[op] += ops.end[op] - ops.start[op];
    if (!counts(op)) continue;
    uint32_t around = ops.parent[op];
    while (around != kNone && !counts(around)) around = ops.parent[around];
    if (around != kNone) own[around] -= TimeIn(ops, around, ops.start[op], ops.end[op]);
  }
  return own;
}

// It finds PyTorch's outermost of nested operators ("aten::item" rather than
// "aten::_local_scalar_dense"), else the innermost.
class OperatorAround {
 public:
  explicit OperatorAround(const Trace& trace) : trace_(trace), by_writer_(trace.writers.size()) {
    const Operators& ops = trace.operators;
    for (uint32_t op = 0; op < ops.size(); ++op) {
      if (ops.writer[op] < by_writer_.size()) by_writer_[ops.writer[op]].push_back(op);
    }
  }
  bool empty() const { return trace_.operators.size() == 0; }
  // Rows of Trace::operators; kNone: none.
  uint32_t InnermostAt(uint16_t writer, int64_t time) const {
    if (writer >= by_writer_.size()) return kNone;
    const Operators& ops = trace_.operators;
    const std::vector<uint32_t>& rows = by_writer_[writer];
    const auto after =
        std::ranges::upper_bound(rows, time, {}, [&ops](uint32_t op) { return ops.start[op]; });
    if (after == rows.begin()) return kNone;
    uint32_t op = *std::prev(after);
    while (op != kNone && ops.end[op] < time) op = ops.parent[op];
    return op;
  }
  uint32_t RowAt(uint16_t writer, int64_t time) const {
    const Operators& ops = trace_.operators;
    uint32_t op = InnermostAt(writer, time);
    if (op == kNone) return kNone;
    while (IsAten(op) && ops.parent[op] != kNone && IsAten(ops.parent[op])) op = ops.parent[op];
    return op;
  }
  std::string_view At(uint16_t writer, int64_t time) const {
    const uint32_t op = RowAt(writer, time);
    if (op == kNone) return {};
    return trace_.dictionary.String(trace_.operators.name[op]);
  }

 private:
  bool IsAten(uint32_t op) const {
    return trace_.dictionary.String(trace_.operators.name[op]).starts_with("aten::");
  }
  const Trace& trace_;
  std::vector<std::vector<uint32_t>> by_writer_;  // by start
};

}  // namespace ranktap::collector
