#include "collector/facts/gloo_calls.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "collector/facts/flops/dtype_sizes.h"
#include "collector/facts/flops/op_inputs.h"
#include "collector/file/json.h"
#include "collector/trace/execution_collective.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kGloo = "gloo:";

// The names of PyTorch's process group of NCCL, which the readers of Kineto's files know.
std::string KinetoName(std::string_view gloo) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames = {{
      {"all_reduce", "allreduce"},
      {"allgather", "all_gather"},
      {"allgatherv", "all_gather"},
      {"alltoall", "all_to_all"},
      {"alltoallv", "all_to_allv"},
  }};
  const auto found = std::ranges::find(kNames, gloo, &decltype(kNames)::value_type::first);
  return std::string(found == kNames.end() ? gloo : found->second);
}

// What goes into an operator. No type: it has no tensors, or they were not recorded.
struct Input {
  std::string_view type;
  uint64_t elements = 0;
};

Input InputOf(const Trace& trace, uint32_t op) {
  const OpInputs inputs(trace.dictionary.String(trace.operators.shapes.At(op)),
                        trace.dictionary.String(trace.operators.types.At(op)));
  Input input;
  for (size_t i = 0; i < std::min(inputs.shapes.size(), inputs.values.size()); ++i) {
    const Dims& dims = inputs.shapes[i];
    const std::string_view type = inputs.values[i];
    if (BytesPerElement(type) == 0) continue;  // no tensor
    if (input.type.empty()) input.type = type;
    input.elements += dims.empty() ? 1 : static_cast<uint64_t>(Product(dims));
  }
  return input;
}

void SetGroup(const ProcessGroup* group, uint32_t size, Collective* call) {
  call->group_size = size;
  if (group == nullptr) return;
  call->group = group->name;
  call->group_description = group->description;
  call->group_size = group->size;
  if (!group->ranks.empty()) {
    call->group_ranks = fmt::format("[{}]", fmt::join(group->ranks, ", "));
  }
}

// As PyTorch's process group of NCCL counts them (SetElements in execution_collective.cc). Of a
// scatter only its root's operator has inputs, and splits of all_to_allv are not recorded: then
// nothing is said.
void SetElements(const Input& input, Collective* call) {
  const std::string& name = call->name;
  if (name == "barrier") call->dtype = "Byte";
  if (input.type.empty() || name == "all_to_allv") return;
  call->dtype = NameOfDtype(input.type);
  call->in_elements = call->out_elements = input.elements;
  if (call->group_size == 0) return;
  if (name == "all_gather" || name == "gather") call->out_elements *= call->group_size;
  if (name == "scatter" || name == "reduce_scatter") call->out_elements /= call->group_size;
}

// Operators of gloo by thread and start.
using OperatorsByStart = std::map<std::pair<uint16_t, int64_t>, uint32_t>;

OperatorsByStart OperatorsOfGloo(const Trace& trace) {
  const Operators& ops = trace.operators;
  OperatorsByStart found;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (!trace.dictionary.String(ops.name[op]).starts_with(kGloo)) continue;
    found.emplace(std::pair(ops.writer[op], ops.start[op]), op);
  }
  return found;
}

uint32_t OperatorAround(const Trace& trace, const OperatorsByStart& operators, uint32_t row) {
  const Ranges& ranges = trace.ranges;
  const auto after = operators.upper_bound({ranges.writer[row], ranges.start[row]});
  if (after == operators.begin()) return kNone;
  const auto& [key, op] = *std::prev(after);
  const bool is_around =
      key.first == ranges.writer[row] && trace.operators.end[op] >= ranges.end[row];
  return is_around ? op : kNone;
}

// The groups that the hooks tied contexts to; nullptr: an address that came again, of two groups.
struct Contexts {
  std::unordered_map<uint32_t, const ProcessGroup*> groups;
};

const ProcessGroup* GroupNamed(const Trace& trace, const Json& row) {
  const Json& name = row[proto::kGroupsRow.Key("name")];
  for (const ProcessGroup& group : trace.process_groups) {
    if (name == group.name) return &group;
  }
  return nullptr;
}

Contexts ReadContexts(const Trace& trace) {
  Contexts contexts;
  for (const std::string_view line : MarkedLines(trace, kCommDomain, proto::kGroupsMark)) {
    const Json row = ParseJson(line);
    if (!row.is_object()) continue;
    const ProcessGroup* const group = GroupNamed(trace, row);
    const Json& numbers = row[proto::kGroupsRow.Key("contexts")];
    if (group == nullptr || !numbers.is_array()) continue;
    for (const Json& number : numbers) {
      if (!number.is_number_unsigned()) continue;
      const auto [at, is_new] = contexts.groups.try_emplace(number.get<uint32_t>(), group);
      if (!is_new && at->second != group) at->second = nullptr;
    }
  }
  return contexts;
}

const std::unordered_map<uint32_t, const ProcessGroup*>& ContextsOf(const Trace& trace) {
  return trace.memo.Get<Contexts>([&trace] { return ReadContexts(trace); }).groups;
}

// The only group of gloo's that has peers, which a message without a range is of; nullptr: there
// are several.
const ProcessGroup* OnlyGroup(const Trace& trace) {
  const ProcessGroup* only = nullptr;
  for (const ProcessGroup& group : trace.process_groups) {
    if (group.size < 2 || !IsOfGloo(group)) continue;
    if (only != nullptr) return nullptr;
    only = &group;
  }
  return only;
}

}  // namespace

bool IsOfGloo(const ProcessGroup& group) {
  return group.backend.find("gloo") != group.backend.npos;
}

const ProcessGroup* GroupOfGlooRange(const Trace& trace, uint32_t context, uint32_t size) {
  const auto& named = ContextsOf(trace);
  if (const auto found = named.find(context); found != named.end()) return found->second;
  const ProcessGroup* of_size = nullptr;
  for (const ProcessGroup& group : trace.process_groups) {
    if (group.size != size || !IsOfGloo(group)) continue;
    if (of_size != nullptr) return nullptr;
    of_size = &group;
  }
  return of_size;
}

bool IsNamedGlooContext(const Trace& trace, uint32_t context) {
  const auto& named = ContextsOf(trace);
  const auto found = named.find(context);
  return found != named.end() && found->second != nullptr;
}

std::string GlooGroupName(const ProcessGroup& group) {
  const std::string& description = group.description;
  return description.empty() || description == "undefined" ? fmt::format("group {}", group.name)
                                                           : description;
}

GlooCalls::GlooCalls(const Trace& trace) {
  if (!trace.is_ours()) return;
  const auto name_of = [&trace](uint32_t text) {
    const std::string_view name = trace.dictionary.String(text);
    return name.starts_with(kGloo) ? KinetoName(name.substr(kGloo.size())) : std::string();
  };
  const OperatorsByStart operators = OperatorsOfGloo(trace);
  const Ranges& ranges = trace.ranges;
  for (const uint32_t row : RangesIn(trace, kCommDomain)) {
    Collective call;
    call.name = name_of(ranges.name[row]);
    if (call.name.empty()) continue;
    const uint32_t size = ranges.category.At(row);
    SetGroup(GroupOfGlooRange(trace, ranges.color.At(row), size), size, &call);
    const uint32_t op = OperatorAround(trace, operators, row);
    SetElements(op == kNone ? Input{} : InputOf(trace, op), &call);
    if (op != kNone) by_operator_.emplace(op, call);
    by_range_.emplace(row, std::move(call));
  }
  for (const auto& [key, op] : operators) {
    if (by_operator_.contains(op)) continue;
    Collective call;
    call.name = name_of(trace.operators.name[op]);
    SetGroup(OnlyGroup(trace), 0, &call);
    SetElements(InputOf(trace, op), &call);
    by_operator_.emplace(op, std::move(call));
  }
}

bool HasSeveralProfiledGlooGroups(const Run& run) {
  return std::ranges::any_of(run.traces, [](const Trace& trace) {
    return !trace.is_ours() && std::ranges::count_if(trace.process_groups, IsOfGloo) > 1;
  });
}

}  // namespace ranktap::collector
