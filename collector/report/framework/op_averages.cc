// Rows of torch's key_averages() out of a trace's events.
#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "collector/facts/device_names.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/framework/op_tree.h"
#include "collector/facts/framework/python_stacks.h"
#include "collector/report/framework/op_summary.h"

namespace ranktap::collector {
namespace {

constexpr std::array<std::string_view, kPasses> kPassNames = {"forward", "backward", "recompute"};

std::string Rewritten(std::string_view name) {
  return name.starts_with("ProfilerStep#") ? "ProfilerStep*" : std::string(name);
}

// Tells apart what may stand in different rows, by ids of the dictionary: two keys may still be one
// row's.
struct EventKey {
  enum class Of : uint8_t { kHost, kCall, kAnnotation, kDevice, kDeviceAnnotation, kStrayMemory };
  Of of = Of::kHost;
  uint8_t pass = 0;   // 1 + Pass; 0: none
  uint64_t name = 0;  // of a device: KeyOfName
  uint32_t stack = 0, shapes = 0, module = 0;
  bool operator==(const EventKey&) const = default;
};

class Averages {
 public:
  explicit Averages(const ReportOptions& options) : options_(options) {}

  // describe() -> OpRow, without sums, is called where the row is not among those asked for last:
  // its texts take longer than all else of an event.
  template <typename Describe>
  OpRow& RowOf(const EventKey& key, Describe&& describe) {
    Slot& slot = slots_[(key.name * 31 + key.shapes * 17 + key.stack * 13 + key.module * 7 +
                         key.pass * 5 + static_cast<size_t>(key.of) * 3) %
                        kSlots];
    if (slot.row == kNone || slot.key != key) slot = {key, Find(describe())};
    return rows_[slot.row];
  }
  std::vector<OpRow> Take() { return std::move(rows_); }

 private:
  static constexpr size_t kSlots = 1024;
  struct Slot {
    EventKey key;
    uint32_t row = kNone;
  };

  uint32_t Find(OpRow row) {
    std::string key =
        row.name + '\0' + (row.on_device ? 'd' : 'c') + (row.is_annotation ? 'a' : 'o');
    if (options_.by_shape) key.append(1, '\0').append(row.shapes);
    if (options_.by_module) key.append(1, '\0').append(row.module).append(1, '\0').append(row.pass);
    for (const std::string& frame : row.stack) key.append(1, '\0').append(frame);
    const auto [at, is_new] =
        by_text_.try_emplace(std::move(key), static_cast<uint32_t>(rows_.size()));
    if (is_new) {
      if (options_.by_shape && row.shapes.empty()) row.shapes = "[]";  // as torch's table
      rows_.push_back(std::move(row));
    }
    return at->second;
  }

  const ReportOptions& options_;
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::unordered_map<std::string, uint32_t> by_text_;
  std::vector<OpRow> rows_;
};

// A node of the backward pass; the engine's evaluation around it is none. Files say whose thread
// made it, but not the scope that torch goes by.
bool IsBackward(const Trace& trace, uint32_t op) {
  const Operators& ops = trace.operators;
  const std::string_view name = trace.dictionary.String(ops.name[op]);
  if (name.starts_with("autograd::engine::")) return false;
  return ops.scope.At(op) == 1 || ops.forward_thread.At(op) != 0 ||
         name.starts_with("torch::autograd::");
}

// The stack of each node, by its text's id. What runs inside a node of the backward pass has the
// stack of the forward operator of the same sequence number (torch/autograd/profiler_util.py,
// _set_backward_stacktraces). Sequence numbers count by thread: where several threads run forward
// operators, the first of a number counts, as files do not name their threads as torch does.
std::vector<uint32_t> StacksOf(const Trace& trace, const std::vector<HostNode>& nodes) {
  const Operators& ops = trace.operators;
  std::vector<uint32_t> backward(nodes.size(), kNone);  // the node of the backward pass around it
  std::vector<uint32_t> stacks(nodes.size(), 0);
  std::unordered_map<uint64_t, uint32_t> forward;  // by sequence number
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool is_op = nodes[i].kind == HostNode::Kind::kOperator;
    const uint32_t row = nodes[i].row;
    if (is_op && IsBackward(trace, row)) {
      backward[i] = row;
    } else if (nodes[i].parent != kNone) {
      backward[i] = backward[nodes[i].parent];
    }
    if (!is_op || backward[i] != kNone) continue;
    stacks[i] = ops.stack.At(row);
    if (!nodes[i].gone) forward.try_emplace(ops.sequence.At(row), stacks[i]);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (backward[i] == kNone) continue;
    const uint64_t sequence = ops.sequence.At(backward[i]);
    const auto of = forward.find(sequence);
    stacks[i] = sequence == 0 || of == forward.end() ? 0 : of->second;
  }
  return stacks;
}

// Python functions around it do not count.
bool IsInside(const std::vector<HostNode>& nodes, const HostNode& node) {
  uint32_t parent = node.parent;
  while (parent != kNone && nodes[parent].kind == HostNode::Kind::kPython) {
    parent = nodes[parent].parent;
  }
  return parent != kNone;
}

using FlopsByRule = std::array<std::vector<FlopCount>, 2>;  // kProfiler's, kCounter's

void AddNode(const Trace& trace, const OpTree& tree, size_t index, uint32_t stack_id,
             const FlopsByRule& counted, const std::vector<OpPlace>& places,
             const ReportOptions& options, Averages* averages) {
  const HostNode& node = tree.nodes[index];
  const bool is_operator = node.kind == HostNode::Kind::kOperator;
  EventKey key{.of = EventKey::Of::kCall, .stack = stack_id};
  if (is_operator) {
    const Operators& ops = trace.operators;
    const bool is_annotation =
        static_cast<OperatorKind>(ops.kind[node.row]) == OperatorKind::kAnnotation;
    key.of = is_annotation ? EventKey::Of::kAnnotation : EventKey::Of::kHost;
    key.name = ops.name[node.row];
    if (options.by_shape) key.shapes = ops.shapes.At(node.row);
    if (!places.empty()) {
      const OpPlace& place = places[node.row];
      key.module = place.module;
      key.pass = place.in_no_pass ? 0 : static_cast<uint8_t>(1 + static_cast<size_t>(place.pass));
    }
  } else {
    key.name = trace.api_calls.api[node.row];
  }
  OpRow& row = averages->RowOf(key, [&] {
    OpRow made{.name = Rewritten(NameOf(trace, node)),
               .is_annotation = key.of == EventKey::Of::kAnnotation,
               .shapes = std::string(trace.dictionary.String(key.shapes)),
               .module = std::string(trace.dictionary.String(key.module))};
    if (key.pass > 0) made.pass = kPassNames[key.pass - 1u];
    if (stack_id != 0) {
      made.stack =
          InnermostFrames(trace.dictionary.String(stack_id), static_cast<size_t>(options.by_stack));
    }
    return made;
  });
  const int64_t length = node.end - node.start;
  if (row.count++ == 0) row.is_inside = IsInside(tree.nodes, node);
  row.cpu_ns += length;
  row.self_cpu_ns += length - node.children_ns;
  row.device_ns += node.device_ns;
  row.self_device_ns += node.own_device_ns;
  if (!tree.memory.empty()) {
    const NodeMemory& memory = tree.memory[index];
    row.cpu_bytes += memory.cpu_bytes;
    row.self_cpu_bytes += memory.cpu_bytes - memory.children_cpu_bytes;
    row.device_bytes += memory.device_bytes;
    row.self_device_bytes += memory.device_bytes - memory.children_device_bytes;
  }
  if (!is_operator) return;
  row.flops += counted[0][node.row].flops;
  row.counted_flops += counted[1][node.row].flops;
}

// name() -> std::string
template <typename Name>
void AddOnDevice(EventKey::Of of, uint64_t key, Name&& name, int64_t length, Averages* averages) {
  OpRow& row = averages->RowOf({.of = of, .name = key}, [&] {
    return OpRow{
        .name = name(), .on_device = true, .is_annotation = of == EventKey::Of::kDeviceAnnotation};
  });
  ++row.count;
  row.device_ns += length;
  row.self_device_ns += length;
}

// Allocations that no event was open around.
void AddStrayMemory(const Trace& trace, const std::vector<HostNode>& nodes, Averages* averages) {
  const Allocations& all = trace.allocations;
  int64_t reached = INT64_MIN;
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    for (; next < nodes.size() && nodes[next].start <= all.start[i]; ++next) {
      reached = std::max(reached, nodes[next].end);
    }
    if (all.start[i] <= reached) continue;
    OpRow& row = averages->RowOf({.of = EventKey::Of::kStrayMemory},
                                 [] { return OpRow{.name = "[memory]"}; });
    ++row.count;
    int64_t OpRow::*const total =
        all.device_type.At(i) == 0 ? &OpRow::cpu_bytes : &OpRow::device_bytes;
    int64_t OpRow::*const self =
        all.device_type.At(i) == 0 ? &OpRow::self_cpu_bytes : &OpRow::self_device_bytes;
    row.*total += all.bytes[i];
    row.*self += all.bytes[i];
  }
}

}  // namespace

std::vector<OpRow> AverageOps(const Trace& trace, const ReportOptions& options) {
  const OpTree tree = BuildOpTree(trace);
  const std::vector<HostNode>& nodes = tree.nodes;
  const FlopsByRule counted = {CountFlops(trace, FlopRule::kProfiler),
                               CountFlops(trace, FlopRule::kCounter)};
  Averages averages(options);
  const DeviceSpans& spans = DeviceTimeline(trace);
  size_t next = 0;
  const auto add_spans_before = [&](int64_t time) {
    for (; next < spans.size() && spans[next].start < time; ++next) {
      const DeviceSpan& span = spans[next];
      AddOnDevice(
          EventKey::Of::kDevice, KeyOfName(trace, span), [&] { return NameOf(trace, span); },
          span.end - span.start, &averages);
    }
  };
  const std::vector<uint32_t> stacks =
      options.by_stack > 0 ? StacksOf(trace, nodes) : std::vector<uint32_t>();
  const std::vector<OpPlace> places =
      options.by_module ? PlaceOperators(trace) : std::vector<OpPlace>();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const HostNode& node = nodes[i];
    if (node.gone || node.kind == HostNode::Kind::kPython) continue;
    add_spans_before(node.start);
    AddNode(trace, tree, i, stacks.empty() ? 0 : stacks[i], counted, places, options, &averages);
  }
  add_spans_before(INT64_MAX);
  const DeviceAnnotations& annotations = trace.device_annotations;
  for (size_t i = 0; i < annotations.size(); ++i) {
    AddOnDevice(
        EventKey::Of::kDeviceAnnotation, annotations.name[i],
        [&] { return Rewritten(trace.dictionary.String(annotations.name[i])); },
        annotations.end[i] - annotations.start[i], &averages);
  }
  AddStrayMemory(trace, nodes, &averages);
  return averages.Take();
}

}  // namespace ranktap::collector
