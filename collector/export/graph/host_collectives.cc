#include "collector/export/graph/host_collectives.h"

#include <algorithm>
#include <utility>

#include "collector/facts/collective_types.h"
#include "collector/facts/collectives.h"
#include "collector/facts/gloo_calls.h"
#include "collector/facts/operators/op_tensors.h"

namespace ranktap::collector {
namespace {

// Calls of gloo's as the agent saw them.
void AddCaptured(const Run& run, const Trace& trace, const ExportOptions& options,
                 std::vector<HostCollective>* list) {
  const auto index = static_cast<uint32_t>(&trace - run.traces.data());
  for (const CollectiveRun& call : MatchHostCollectives(run)) {
    // As Chakra's stock files count: what goes in.
    const bool gathers = call.type() == "allgather" && call.group_size != 0;
    const int64_t bytes = gathers ? call.bytes / call.group_size : call.bytes;
    for (const CollectiveMember& member : call.members) {
      if (member.trace != index || !options.Keeps(member.start, member.end)) continue;
      list->push_back({member.start, member.end, call.type(), call.group(), bytes});
    }
  }
}

bool HasASmallerGroup(const Trace& trace) {
  uint32_t most = 0;
  for (const ProcessGroup& group : trace.process_groups) most = std::max(most, group.size);
  return std::ranges::any_of(trace.process_groups, [most](const ProcessGroup& group) {
    return group.size > 1 && group.size < most;
  });
}

}  // namespace

// Operators of gloo's names are what the agent saw again, but for messages, before which it does
// not stand. Those are of the group of all ranks, unless there is another that they may be of.
HostCollectives FindHostCollectives(const Run& run, const Trace& trace,
                                    const ExportOptions& options) {
  const Operators& ops = trace.operators;
  HostCollectives found{.are_operators = std::vector<bool>(ops.size())};
  const bool is_ours = trace.is_ours();
  if (is_ours) AddCaptured(run, trace, options, &found.list);
  const bool saw_calls = !found.list.empty();
  const bool one_group = is_ours ? !HasASmallerGroup(trace) : !HasSeveralProfiledGlooGroups(run);
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const std::string_view name = trace.dictionary.String(ops.name[op]);
    HostCollective comm{.start = ops.start[op], .end = ops.end[op], .op = op};
    if (name.starts_with("gloo:")) {
      comm.type = CommunicationType(name);
      const bool is_message = comm.type == "send" || comm.type == "recv";
      found.are_operators[op] = is_ours && !is_message && saw_calls;
      if (!one_group || (is_ours && !is_message)) continue;
      if (!is_ours) comm.bytes = TensorBytes(trace, ops.shapes.At(op), ops.types.At(op));
    } else if (name == "record_param_comms" && trace.origin == TraceOrigin::kExecution &&
               ops.collective.At(op) != 0) {  // which knows nothing of a device
      const Collective& call = trace.collectives[ops.collective.At(op) - 1];
      comm.type = CommunicationType(call.name);
      comm.group = call.group;
      comm.bytes = MessageBytes(call);
    }
    if (comm.type.empty()) continue;
    found.are_operators[op] = true;
    if (options.Keeps(comm.start, comm.end)) found.list.push_back(std::move(comm));
  }
  return found;
}

}  // namespace ranktap::collector
