#include "collector/export/recorded_inputs.h"

#include <fmt/ranges.h>

#include <vector>

#include "collector/trace/execution_trace.h"
#include "collector/trace/operator_values.h"

namespace ranktap::collector {
namespace {

std::string StridesOf(const TraceValue& value) {
  if (value.kind != TraceValue::Kind::kList) {
    return fmt::format("[{}]", fmt::join(value.strides, ", "));
  }
  std::vector<std::string> elements;
  for (const TraceValue& element : value.elements) {
    // In a list only tensors count: a list of numbers has none.
    if (element.kind == TraceValue::Kind::kTensor) elements.push_back(StridesOf(element));
  }
  return fmt::format("[{}]", fmt::join(elements, ", "));
}

}  // namespace

std::unordered_map<uint32_t, RecordedInputs> FindRecordedInputs(const Trace& trace) {
  std::unordered_map<uint32_t, RecordedInputs> found;
  if (!trace.is_ours() || ReadOperatorValues(trace).empty()) return found;
  for (const TraceNode& node : BuildExecutionTrace(trace, INT64_MIN, INT64_MAX).nodes) {
    if (node.op == kNone) continue;
    RecordedInputs& recorded = found[node.op];
    recorded.record_function = node.record_function;
    if (node.inputs.empty()) continue;
    std::vector<std::string> inputs;
    for (const TraceValue& value : node.inputs) inputs.push_back(StridesOf(value));
    recorded.strides = fmt::format("[{}]", fmt::join(inputs, ", "));
  }
  return found;
}

}  // namespace ranktap::collector
