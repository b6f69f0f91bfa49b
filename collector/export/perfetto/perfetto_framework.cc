#include "collector/export/perfetto/perfetto_framework.h"

#include <algorithm>

#include "collector/export/json_text.h"
#include "collector/facts/framework/tensor_arrows.h"

namespace ranktap::collector {

FrameworkEvents::FrameworkEvents(const PerfettoTrace* state)
    : state_(*state), trace_(state->trace) {
  FindArrows();
}

uint32_t FrameworkEvents::OperatorAt(int64_t start, uint16_t writer) const {
  const Operators& ops = trace_.operators;
  const auto first = std::lower_bound(ops.start.begin(), ops.start.end(), start);
  uint32_t found = kNone;
  for (auto i = static_cast<size_t>(first - ops.start.begin());
       i < ops.size() && ops.start[i] == start; ++i) {
    if (ops.writer[i] != writer || !state_.options.Keeps(start, ops.end[i])) continue;
    // Autograd's arrows join operators that have its number; others may begin in the same tick.
    if (ops.sequence.At(i) != 0) return static_cast<uint32_t>(i);
    if (found == kNone) found = static_cast<uint32_t>(i);
  }
  return found;
}

void FrameworkEvents::FindArrows() {
  const Flows& flows = trace_.flows;
  for (size_t i = 0; i < flows.size(); ++i) {
    const uint32_t from = OperatorAt(flows.start[i], flows.from_writer[i]);
    const uint32_t to = OperatorAt(flows.end[i], flows.to_writer[i]);
    if (from == kNone || to == kNone) continue;
    const uint64_t id = state_.first_framework_arrow + i;
    from_.push_back({from, id});
    to_.push_back({to, id});
  }
  FindTensorArrows();
  const auto by_op = [](const Arrow& a, const Arrow& b) { return a.op < b.op; };
  std::stable_sort(from_.begin(), from_.end(), by_op);
  std::stable_sort(to_.begin(), to_.end(), by_op);
}

void FrameworkEvents::FindTensorArrows() {
  if (!state_.options.tensor_arrows) return;
  const Operators& ops = trace_.operators;
  const auto kept = [&](uint32_t op) { return state_.options.Keeps(ops.start[op], ops.end[op]); };
  uint64_t id = state_.first_framework_arrow + trace_.flows.size();
  for (const TensorArrow& arrow : TensorArrows(trace_)) {
    if (!kept(arrow.from) || !kept(arrow.to)) continue;
    from_.push_back({arrow.from, id});
    to_.push_back({arrow.to, id++});
  }
}

std::span<const uint64_t> FrameworkEvents::Take(const std::vector<Arrow>& arrows, uint32_t op,
                                                std::vector<uint64_t>* ids) {
  ids->clear();
  auto at = std::lower_bound(arrows.begin(), arrows.end(), op,
                             [](const Arrow& arrow, uint32_t row) { return arrow.op < row; });
  for (; at != arrows.end() && at->op == op; ++at) ids->push_back(at->id);
  return *ids;
}

void FrameworkEvents::AddText(Note note, uint32_t text) {
  if (text != 0) arguments_.Add(note, SanitizedName(trace_.dictionary.String(text)));
}

void FrameworkEvents::AddCollective(uint32_t number) {
  if (number == 0 || number > trace_.collectives.size()) return;
  const Collective& call = trace_.collectives[number - 1];
  arguments_.Add(Note::kCollective, std::string_view(call.name));
  arguments_.Add(Note::kDtype, std::string_view(call.dtype));
  arguments_.Add(Note::kInElements, call.in_elements);
  arguments_.Add(Note::kOutElements, call.out_elements);
  arguments_.Add(Note::kGroup, std::string_view(call.group));
  arguments_.Add(Note::kGroupSize, call.group_size);
}

PerfettoEvent FrameworkEvents::Operator(size_t row) {
  const Operators& ops = trace_.operators;
  arguments_.Clear();
  if (ops.external_id.At(row) != 0) arguments_.Add(Note::kExternalId, ops.external_id.At(row));
  if (ops.record_function.At(row) != 0) {
    arguments_.Add(Note::kRecordFunction, ops.record_function.At(row));
  }
  if (ops.sequence.At(row) != 0) arguments_.Add(Note::kSequence, ops.sequence.At(row) - 1);
  if (ops.forward_thread.At(row) != 0) {
    arguments_.Add(Note::kForwardThread, uint64_t{ops.forward_thread.At(row)});
  }
  AddText(Note::kShapes, ops.shapes.At(row));
  AddText(Note::kTypes, ops.types.At(row));
  AddText(Note::kValues, ops.values.At(row));
  AddText(Note::kOutputShapes, ops.output_shapes.At(row));
  AddText(Note::kOutputTypes, ops.output_types.At(row));
  AddText(Note::kStack, ops.stack.At(row));
  if (ops.flops.At(row) != 0) arguments_.Add(Note::kFlops, ops.flops.At(row));
  AddCollective(ops.collective.At(row));
  const bool is_operator = ops.kind[row] == static_cast<uint8_t>(OperatorKind::kOperator);
  const auto op = static_cast<uint32_t>(row);
  return {.name = state_.StringName(ops.name[row]),
          .category = is_operator ? PerfettoCategory::kOperator : PerfettoCategory::kRange,
          .arguments = arguments_.bytes(),
          .flows = Take(from_, op, &leaving_),
          .ending_flows = Take(to_, op, &arriving_)};
}

PerfettoEvent FrameworkEvents::PythonCall(size_t row) {
  return {.name = state_.StringName(trace_.python_calls.name[row]),
          .category = PerfettoCategory::kPython};
}

}  // namespace ranktap::collector
