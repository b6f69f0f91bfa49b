#include "collector/trace/operator_join.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ranktap::collector {
namespace {

using ByExternalId = std::unordered_map<uint32_t, uint32_t>;

// The innermost operator open on each API call's thread when it began; kNone: none.
std::vector<uint32_t> OperatorsOfCalls(const Trace& trace) {
  const Operators& ops = trace.operators;
  std::vector<std::vector<uint32_t>> open(trace.writers.size());
  std::vector<uint32_t> around(trace.api_calls.size(), kNone);
  size_t next = 0;
  for (size_t call = 0; call < trace.api_calls.size(); ++call) {
    const int64_t at = trace.api_calls.start[call];
    for (; next < ops.size() && ops.start[next] <= at; ++next) {
      if (ops.writer[next] < open.size()) {
        open[ops.writer[next]].push_back(static_cast<uint32_t>(next));
      }
    }
    if (trace.api_calls.writer[call] >= open.size()) continue;
    std::vector<uint32_t>& stack = open[trace.api_calls.writer[call]];
    while (!stack.empty() && ops.end[stack.back()] < at) stack.pop_back();
    if (!stack.empty()) around[call] = stack.back();
  }
  return around;
}

void JoinWork(const Trace& trace, const ByExternalId& by_id, const std::vector<uint32_t>& around,
              DeviceWork* work) {
  if (work->size() == 0) return;
  work->op.Truncate(0);
  work->op.PadTo(work->size());
  for (size_t i = 0; i < work->size(); ++i) {
    const uint32_t launch = i < work->launch.size() ? work->launch[i] : kNone;
    uint32_t id = work->external_id.At(i);
    if (id == 0 && launch != kNone) id = trace.api_calls.external_id.At(launch);
    if (const auto known = by_id.find(id); id != 0 && known != by_id.end()) {
      work->op[i] = known->second + 1;
    } else if (launch != kNone && around[launch] != kNone) {
      work->op[i] = around[launch] + 1;
    }
  }
}

// What an importer reads from the file: ids, by which tools join an operator to its launches and
// their work.
void NumberOwn(const std::vector<uint32_t>& around, Trace* trace) {
  Operators& ops = trace->operators;
  ops.external_id.Truncate(0);
  uint32_t* const of_operator = ops.external_id.Grow(ops.size());
  std::iota(of_operator, of_operator + ops.size(), 1u);
  trace->api_calls.external_id.Truncate(0);
  uint32_t* const of_call = trace->api_calls.external_id.Grow(around.size());
  for (size_t i = 0; i < around.size(); ++i) of_call[i] = around[i] + 1;  // kNone + 1 is 0
  for (DeviceWork* const work :
       {static_cast<DeviceWork*>(&trace->kernels), static_cast<DeviceWork*>(&trace->copies),
        static_cast<DeviceWork*>(&trace->memsets)}) {
    work->external_id.Truncate(0);
    std::copy(work->op.begin(), work->op.end(), work->external_id.Grow(work->op.size()));
  }
}

// The thread that each backward operator's forward ran on, and the arrow between the two: from the
// last operator of the sequence number, which made the node, to the first of the backward pass, as
// torch.profiler draws it.
void JoinBackward(Trace* trace) {
  constexpr uint8_t kBackward = 1;
  struct Forward {
    uint32_t op;
    bool has_arrow;
  };
  Operators& ops = trace->operators;
  trace->flows = {};
  std::unordered_map<uint64_t, Forward> forward;  // by sequence
  for (uint32_t i = 0; i < ops.size(); ++i) {
    const uint64_t sequence = ops.sequence.At(i);
    if (sequence == 0) continue;
    if (ops.scope.At(i) != kBackward) {
      forward[sequence] = {i, false};
      continue;
    }
    const auto found = forward.find(sequence);
    if (found == forward.end()) continue;
    auto& [from, has_arrow] = found->second;
    if (ops.forward_thread.At(i) == 0) {
      ops.forward_thread.PadTo(i + 1);
      ops.forward_thread[i] = ops.writer[from] + 1u;
    }
    if (std::exchange(has_arrow, true)) continue;
    trace->flows.start.push_back(ops.start[from]);
    trace->flows.end.push_back(ops.start[i]);
    trace->flows.from_writer.push_back(ops.writer[from]);
    trace->flows.to_writer.push_back(ops.writer[i]);
    trace->flows.id.push_back(sequence);
    trace->flows.kind.push_back(static_cast<uint8_t>(FlowKind::kForwardBackward));
  }
}

}  // namespace

void NestOperators(Trace* trace) {
  Operators& ops = trace->operators;
  ops.parent.Truncate(0);
  uint32_t* const parent = ops.parent.Grow(ops.size());
  std::vector<std::vector<uint32_t>> open(trace->writers.size());
  for (uint32_t i = 0; i < ops.size(); ++i) {
    parent[i] = kNone;
    if (ops.writer[i] >= open.size()) continue;
    std::vector<uint32_t>& stack = open[ops.writer[i]];
    while (!stack.empty() && ops.end[stack.back()] < ops.end[i] &&
           ops.end[stack.back()] <= ops.start[i]) {
      stack.pop_back();
    }
    if (!stack.empty()) parent[i] = stack.back();
    stack.push_back(i);
  }
}

void JoinOperators(Trace* trace) {
  if (trace->operators.size() == 0) return;
  ByExternalId by_id;
  for (uint32_t i = 0; i < trace->operators.external_id.size(); ++i) {
    const uint32_t id = trace->operators.external_id[i];
    if (id != 0) by_id.try_emplace(id, i);
  }
  const std::vector<uint32_t> around = OperatorsOfCalls(*trace);
  JoinWork(*trace, by_id, around, &trace->kernels);
  JoinWork(*trace, by_id, around, &trace->copies);
  JoinWork(*trace, by_id, around, &trace->memsets);
  if (trace->is_ours()) {
    NumberOwn(around, trace);
    JoinBackward(trace);
  }
}

}  // namespace ranktap::collector
