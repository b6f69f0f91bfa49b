#include "collector/export/graph/host_messages.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/operators/op_tensors.h"
#include "collector/trace/operator_values.h"

namespace ranktap::collector {
namespace {

constexpr size_t kPeer = 2, kTag = 3;

int64_t NumberAt(const Dims& numbers) { return numbers.size() == 1 ? numbers[0] : -1; }

int64_t NumberAt(const std::vector<TraceValue>& values, size_t at) {
  const bool is_number = at < values.size() && values[at].kind == TraceValue::Kind::kInteger;
  return is_number ? values[at].integer : -1;
}

int64_t BytesOf(const TraceValue& value) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 50;
  uint64_t bytes = 0;
  if (value.kind == TraceValue::Kind::kTensor) {
    bytes = std::min(value.elements_count, kMostBytes) * value.element_bytes;
  }
  for (const TraceValue& element : value.elements) {
    bytes += static_cast<uint64_t>(BytesOf(element));
  }
  return static_cast<int64_t>(std::min(bytes, kMostBytes));
}

}  // namespace

std::map<uint32_t, HostMessage> ReadHostMessages(const Trace& trace) {
  std::map<uint32_t, HostMessage> found;
  std::map<std::pair<uint16_t, int64_t>, HostMessage*> by_start;
  const Operators& ops = trace.operators;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const std::string_view name = trace.dictionary.String(ops.name[op]);
    if (name != "c10d::send" && name != "c10d::recv_") continue;
    const OpInputs inputs(trace.dictionary.String(ops.shapes.At(op)),
                          trace.dictionary.String(ops.values.At(op)));
    HostMessage& message = found[op];
    message.peer = NumberAt(inputs.Integers(kPeer));
    message.tag = NumberAt(inputs.Integers(kTag));
    message.bytes = TensorBytes(trace, ops.shapes.At(op), ops.types.At(op));
    by_start[{ops.writer[op], ops.start[op]}] = &message;
  }
  if (found.empty() || !trace.is_ours()) return found;
  for (const RecordedValues& recorded : ReadOperatorValues(trace)) {
    const auto at = by_start.find({recorded.writer, recorded.time});
    if (recorded.are_outputs || at == by_start.end() || recorded.values.empty()) continue;
    at->second->peer = NumberAt(recorded.values, kPeer);
    at->second->tag = NumberAt(recorded.values, kTag);
    at->second->bytes = BytesOf(recorded.values.front());
  }
  return found;
}

}  // namespace ranktap::collector
