#include "collector/export/graph/graph_items.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "collector/facts/collective_types.h"
#include "collector/facts/collectives.h"
#include "collector/facts/flops/dtype_sizes.h"
#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/framework/operator_around.h"
#include "collector/facts/gloo_calls.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 50;

class Lister {
 public:
  Lister(const Run& run, const Trace& trace, const DeviceOrder& order, const ExportOptions& options)
      : run_(run), trace_(trace), order_(order), options_(options), around_(trace) {}

  GraphItems List() {
    AddHostCollectives();
    AddOperators();
    AddCalls();
    AddDevice();
    AddThreads();
    std::ranges::sort(items_.list, {}, [](const GraphItem& item) {
      return std::tuple(item.key, item.kind, item.row);
    });
    return std::move(items_);
  }

 private:
  bool Keeps(int64_t start, int64_t end) const { return options_.Keeps(start, end); }

  void AddHostCollectives() {
    is_collective_.resize(trace_.operators.size());
    if (trace_.is_ours()) {
      AddCaptured();
    } else {
      AddProfiled();
    }
  }
  // For files of torch.profiler and execution traces, which know nothing of a device.
  void AddProfiled() {
    const Operators& ops = trace_.operators;
    const bool one_group = !HasSeveralProfiledGlooGroups(run_);
    for (uint32_t op = 0; op < ops.size(); ++op) {
      const std::string_view name = trace_.dictionary.String(ops.name[op]);
      HostCollective comm{ops.start[op], ops.end[op], "", "", 0, 0, op};
      if (name.starts_with("gloo:") && one_group) {
        comm.type = CommunicationType(name);
        comm.bytes = static_cast<int64_t>(TensorBytes(trace_, ops.shapes.At(op), ops.types.At(op)));
      } else if (name == "record_param_comms" && trace_.origin == TraceOrigin::kExecution &&
                 ops.collective.At(op) != 0) {
        const Collective& call = trace_.collectives[ops.collective.At(op) - 1];
        comm.type = CommunicationType(call.name);
        comm.group = call.group;
        comm.group_size = call.group_size;
        comm.bytes = MessageBytes(call);
      }
      if (comm.type.empty()) continue;
      is_collective_[op] = true;
      AddHostCollective(std::move(comm));
    }
  }
  // The agent saw gloo's calls itself; operators of their names are the same again.
  void AddCaptured() {
    const auto index = static_cast<uint32_t>(&trace_ - run_.traces.data());
    for (const CollectiveRun& run : MatchHostCollectives(run_)) {
      for (const CollectiveMember& member : run.members) {
        if (member.trace != index) continue;
        AddHostCollective({member.start, member.end, run.type, run.group, run.group_size,
                           MessageBytes(run), kNone});
      }
    }
    const bool saw_calls = !items_.collectives.empty();
    for (uint32_t op = 0; op < trace_.operators.size(); ++op) {
      const std::string_view name = trace_.dictionary.String(trace_.operators.name[op]);
      if (!name.starts_with("gloo:")) continue;
      const std::string type = CommunicationType(name);
      is_collective_[op] = type == "send" || type == "recv" ? AddMessage(op, type) : saw_calls;
    }
  }
  // Messages are no calls of gloo's that the agent stands before: its operators are all there is.
  // Theirs is the group of all ranks, unless there is another that they may be of.
  bool AddMessage(uint32_t op, const std::string& type) {
    if (IsInSmallerGroup()) return false;
    AddHostCollective({trace_.operators.start[op], trace_.operators.end[op], type, "", 0, 0, op});
    return true;
  }
  bool IsInSmallerGroup() const {
    const std::vector<ProcessGroup>& groups = trace_.process_groups;
    uint32_t most = 0;
    for (const ProcessGroup& group : groups) most = std::max(most, group.size);
    return std::ranges::any_of(
        groups, [&](const ProcessGroup& group) { return group.size > 1 && group.size < most; });
  }
  void AddHostCollective(HostCollective comm) {
    if (!Keeps(comm.start, comm.end)) return;
    items_.list.push_back({.key = comm.start,
                           .end = comm.end,
                           .kind = GraphItem::Kind::kHostCollective,
                           .row = static_cast<uint32_t>(items_.collectives.size())});
    items_.collectives.push_back(std::move(comm));
  }

  void AddOperators() {
    const Operators& ops = trace_.operators;
    std::vector<int64_t>& own = items_.own_ns;
    own.resize(ops.size());
    for (uint32_t op = 0; op < ops.size(); ++op) {
      own[op] += ops.end[op] - ops.start[op];
      const uint32_t parent = ops.parent[op];
      if (parent != kNone) own[parent] -= Inside(ops.start[op], ops.end[op], parent);
      if (is_collective_[op] || !Keeps(ops.start[op], ops.end[op])) continue;
      items_.list.push_back({.key = ops.start[op],
                             .end = ops.end[op],
                             .kind = GraphItem::Kind::kOperator,
                             .row = op,
                             .writer = ops.writer[op],
                             .around = parent});
    }
  }
  int64_t Inside(int64_t start, int64_t end, uint32_t op) const {
    const Operators& ops = trace_.operators;
    return std::max<int64_t>(std::min(end, ops.end[op]) - std::max(start, ops.start[op]), 0);
  }

  // Those that wait for a device, and those that launched work outside of any operator.
  void AddCalls() {
    const ApiCalls& calls = trace_.api_calls;
    std::vector<bool> launches(calls.size());
    for (const DeviceSpan& span : DeviceTimeline(trace_)) {
      if (span.launch != kNone && OperatorOf(span) == kNone) launches[span.launch] = true;
    }
    for (const DeviceReturn& back : order_.returns()) {
      if (back.only_asks) continue;
      AddCall(back.is_event_call ? trace_.event_calls : calls, back.row, back.latest);
      if (!back.is_event_call) launches[back.row] = false;
    }
    for (uint32_t i = 0; i < calls.size(); ++i) {
      if (launches[i]) AddCall(calls, i, kNone);
    }
  }
  void AddCall(const ApiCalls& calls, uint32_t row, uint32_t awaited) {
    if (!Keeps(calls.start[row], calls.end[row])) return;
    GraphItem item{
        .key = calls.start[row],
        .end = calls.end[row],
        .kind = &calls == &trace_.api_calls ? GraphItem::Kind::kCall : GraphItem::Kind::kEventCall,
        .row = row,
        .writer = calls.writer[row],
        .around = around_.InnermostAt(calls.writer[row], calls.start[row]),
        .awaited = awaited};
    if (awaited != kNone) item.key = std::max(item.key, DeviceTimeline(trace_)[awaited].end);
    if (item.around != kNone) {
      items_.own_ns[item.around] -= Inside(calls.start[row], calls.end[row], item.around);
    }
    items_.list.push_back(item);
  }
  uint32_t OperatorOf(const DeviceSpan& span) const {
    const uint32_t op = span.table == DeviceSpan::Table::kKernel ? trace_.kernels.op.At(span.row)
                        : span.table == DeviceSpan::Table::kCopy ? trace_.copies.op.At(span.row)
                        : span.table == DeviceSpan::Table::kMemset
                            ? trace_.memsets.op.At(span.row)
                            : trace_.graph_launches.op.At(span.row);
    return op == 0 ? kNone : op - 1;
  }
  // Behind its launch, whatever the clocks say.
  void AddDevice() {
    const std::vector<DeviceSpan>& spans = DeviceTimeline(trace_);
    for (uint32_t i = 0; i < spans.size(); ++i) {
      const DeviceSpan& span = spans[i];
      if (!Keeps(span.start, span.end)) continue;
      const uint32_t op = OperatorOf(span);
      int64_t key = span.start;
      if (op != kNone) key = std::max(key, trace_.operators.start[op]);
      items_.list.push_back(
          {.key = key, .end = span.end, .kind = GraphItem::Kind::kDevice, .row = i, .around = op});
    }
  }

  void AddThreads() {
    std::map<uint16_t, bool> seen;
    for (const GraphItem& item : items_.list) {
      if (item.kind != GraphItem::Kind::kDevice && item.kind != GraphItem::Kind::kHostCollective) {
        seen.emplace(item.writer, true);
      }
    }
    if (seen.empty()) seen.emplace(0, true);
    for (const auto& [writer, is] : seen) {
      items_.list.push_back({.key = INT64_MIN, .end = INT64_MIN, .row = writer, .writer = writer});
    }
  }

  const Run& run_;
  const Trace& trace_;
  const DeviceOrder& order_;
  const ExportOptions& options_;
  GraphItems items_;
  std::vector<bool> is_collective_;  // by operator: gloo's own
  OperatorAround around_;
};

}  // namespace

std::string CommunicationType(std::string_view name) {
  const std::string type = CollectiveTypeOf(name);
  return type == "other" ? "" : type;
}

int64_t MessageBytes(const Collective& call) {
  const uint64_t elements = call.in_elements != 0 ? call.in_elements : call.out_elements;
  return elements > kMostBytes / 16 ? 0
                                    : static_cast<int64_t>(elements) * BytesPerElement(call.dtype);
}

int64_t MessageBytes(const CollectiveRun& run) {
  const bool gathers = run.type == "allgather" && run.group_size != 0;
  return gathers ? run.bytes / run.group_size : run.bytes;
}

uint64_t TensorBytes(const Trace& trace, uint32_t shapes, uint32_t types) {
  const OpInputs inputs(trace.dictionary.String(shapes), "");
  std::string_view names = trace.dictionary.String(types);  // ["float", "long int"]
  uint64_t bytes = 0;
  for (const Dims& dims : inputs.shapes) {
    const size_t open = names.find('"');
    const size_t close = open == names.npos ? open : names.find('"', open + 1);
    if (close == names.npos) break;
    const int64_t of_type = BytesPerElement(names.substr(open + 1, close - open - 1));
    names.remove_prefix(close + 1);
    int64_t tensor = 0;
    if (dims.empty() || __builtin_mul_overflow(Product(dims), of_type, &tensor)) continue;
    bytes = std::min(bytes + std::min(static_cast<uint64_t>(tensor), kMostBytes), kMostBytes);
  }
  return bytes;
}

GraphItems ListGraphItems(const Run& run, const Trace& trace, const DeviceOrder& order,
                          const ExportOptions& options) {
  return Lister(run, trace, order, options).List();
}

}  // namespace ranktap::collector
