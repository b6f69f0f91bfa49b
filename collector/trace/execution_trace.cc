#include "collector/trace/execution_trace.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "collector/file/json.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"
#include "collector/trace/operator_schemas.h"
#include "collector/trace/operator_values.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kThreadName = "[pytorch|profiler|execution_trace|thread]";
constexpr std::string_view kProcessName = "[pytorch|profiler|execution_trace|process]";
constexpr std::string_view kGroupsName = "## process_group:init ##";
constexpr std::string_view kEvaluation = "autograd::engine::evaluate_function: ";
constexpr std::string_view kGloo = "gloo:", kDistributed = "c10d::";

class Builder {
 public:
  Builder(const Trace& trace, int64_t from, int64_t to)
      : trace_(trace), ops_(trace.operators), schemas_(trace), from_(from), to_(to) {}

  ExecutionTrace Build() {
    KeepOperators();
    JoinValues();
    schemas_.LearnKinds();
    MakeThreads();
    MakeGroups();
    MakeLabels();
    MakeOperators();
    SetCollectives();
    SetForward();
    Number();
    return Ordered();
  }

 private:
  struct Thread {
    uint64_t node = 0, number = 0;  // PyTorch's
    int64_t first = INT64_MAX;      // operator
    std::vector<size_t> labels;     // nodes, by start
  };
  struct Joined {
    std::optional<RecordedValues> inputs, outputs;
  };

  bool IsKept(uint32_t op) const { return ops_.start[op] < to_ && ops_.end[op] >= from_; }

  void KeepOperators() {
    for (uint32_t op = 0; op < ops_.size(); ++op) {
      if (!IsKept(op)) continue;
      Thread& thread = threads_[ops_.writer[op]];
      thread.first = std::min(thread.first, ops_.start[op]);
    }
  }

  // Inputs are told as an operator starts, outputs as it ends.
  void JoinValues() {
    std::map<std::pair<uint16_t, int64_t>, uint32_t> starting, ending;
    for (uint32_t op = 0; op < ops_.size(); ++op) {
      starting.emplace(std::pair(ops_.writer[op], ops_.start[op]), op);
      ending.emplace(std::pair(ops_.writer[op], ops_.end[op]), op);
    }
    std::unordered_map<uint64_t, uint32_t> by_record;
    for (RecordedValues& values : ReadOperatorValues(trace_)) {
      const auto record = values.record_function;
      const auto& moments = values.are_outputs ? ending : starting;
      const auto known = by_record.find(record);
      const auto found = moments.find({values.writer, values.time});
      uint32_t op = found == moments.end() ? kNone : found->second;
      if (values.are_outputs && record != 0) op = known == by_record.end() ? kNone : known->second;
      if (op == kNone) continue;
      if (!values.are_outputs && record != 0) by_record[record] = op;
      if (!values.are_outputs && IsKept(op)) schemas_.Saw(NameOf(op), values);
      Joined& joined = joined_[op];
      (values.are_outputs ? joined.outputs : joined.inputs) = std::move(values);
    }
  }

  std::string_view NameOf(uint32_t op) const { return trace_.dictionary.String(ops_.name[op]); }

  void MakeThreads() {
    for (const auto& [op, joined] : joined_) {
      if (joined.inputs && joined.inputs->thread != 0) {
        threads_[ops_.writer[op]].number = joined.inputs->thread;
      }
    }
    std::vector<std::pair<int64_t, uint16_t>> order;
    for (const auto& [writer, thread] : threads_) order.emplace_back(thread.first, writer);
    std::sort(order.begin(), order.end());
    for (const auto& [first, writer] : order) {
      if (first == INT64_MAX) continue;
      Thread& thread = threads_[writer];
      if (thread.number == 0) thread.number = UnusedNumber();
      TraceNode node;
      node.name = kThreadName;
      node.parent = kProcessNode;
      node.thread = thread.number;
      node.start = node.end = first;
      thread.node = Add(std::move(node));
    }
  }

  uint64_t UnusedNumber() const {
    uint64_t number = 1;
    for (const auto& [writer, thread] : threads_) number = std::max(number, thread.number + 1);
    return number;
  }

  // As the observer tells them, as a text of JSON.
  void MakeGroups() {
    if (trace_.process_groups.empty() || nodes_.empty()) return;
    std::string text = "[";
    for (const ProcessGroup& group : trace_.process_groups) {
      if (text.size() > 1) text += ", ";
      text += "{\"pg_name\": " + Quoted(group.name) +
              ", \"pg_desc\": " + Quoted(group.description) +
              ", \"backend_config\": " + Quoted(group.backend) + ", \"ranks\": " + Ranks(group) +
              ", \"group_size\": " + std::to_string(group.size) +
              ", \"group_count\": " + std::to_string(trace_.process_groups.size()) + "}";
    }
    TraceNode node;
    node.name = kGroupsName;
    node.parent = nodes_.front().id;
    node.thread = nodes_.front().thread;
    node.start = node.end = nodes_.front().start;
    node.inputs.push_back({.kind = TraceValue::Kind::kText, .type = "String", .text = text + "]"});
    Add(std::move(node));
  }

  static std::string Quoted(const std::string& text) { return WriteJson(Json(text)); }

  // None where the group has all ranks.
  std::string Ranks(const ProcessGroup& group) const {
    size_t most = 0;
    for (const ProcessGroup& each : trace_.process_groups) most = std::max<size_t>(most, each.size);
    std::string text;
    if (group.size < most) {
      for (const uint32_t rank : group.ranks) {
        text += (text.empty() ? "" : ", ") + std::to_string(rank);
      }
    }
    return "[" + text + "]";
  }

  // Labels that the program opened before the window are no operators of it, but around these.
  void MakeLabels() {
    const Ranges& ranges = trace_.ranges;
    for (const uint32_t row : RangesIn(trace_, proto::kLabelDomain)) {
      const auto found = threads_.find(ranges.writer[row]);
      if (found == threads_.end() || found->second.node == 0) continue;
      Thread& thread = found->second;
      if (!HasOperators(ranges.writer[row], ranges.start[row], ranges.end[row])) continue;
      TraceNode node;
      node.name = trace_.dictionary.String(ranges.name[row]);
      node.thread = thread.number;
      node.start = ranges.start[row];
      node.end = ranges.end[row];
      node.parent = ParentAt(thread, node.start, node.end);
      Add(std::move(node));
      thread.labels.push_back(nodes_.size() - 1);
    }
  }

  bool HasOperators(uint16_t writer, int64_t start, int64_t end) const {
    const auto first = std::lower_bound(ops_.start.begin(), ops_.start.end(), start);
    for (auto op = static_cast<uint32_t>(first - ops_.start.begin());
         op < ops_.size() && ops_.start[op] < end; ++op) {
      if (ops_.writer[op] == writer && IsKept(op) && ops_.end[op] <= end) return true;
    }
    return false;
  }

  // The innermost label around a time, or the thread.
  uint64_t ParentAt(const Thread& thread, int64_t start, int64_t end) const {
    for (size_t i = thread.labels.size(); i-- != 0;) {
      const TraceNode& label = nodes_[thread.labels[i]];
      if (label.start <= start && label.end >= end) return label.id;
    }
    return thread.node;
  }

  void MakeOperators() {
    node_of_.assign(ops_.size(), kNone);
    for (uint32_t op = 0; op < ops_.size(); ++op) {
      if (!IsKept(op)) continue;
      const Thread& thread = threads_[ops_.writer[op]];
      const uint32_t parent = op < ops_.parent.size() ? ops_.parent[op] : kNone;
      TraceNode node;
      node.name = NameOf(op);
      node.op = op;
      node.start = ops_.start[op];
      node.end = ops_.end[op];
      node.parent = parent != kNone && node_of_[parent] != kNone
                        ? nodes_[node_of_[parent]].id
                        : ParentAt(thread, node.start, node.end);
      node.record_function = ops_.record_function.At(op);
      node.sequence = static_cast<int64_t>(ops_.sequence.At(op)) - 1;
      node.scope = ops_.scope.At(op);
      // The model has it as part of the backward pass; to PyTorch it is a function.
      if (node.name.starts_with(kEvaluation)) node.scope = kFunctionScope;
      if (node.scope == 0 && ops_.kind[op] == static_cast<uint8_t>(OperatorKind::kAnnotation)) {
        node.scope = kUserScope;
      }
      node.thread = thread.number;
      TakeValues(op, &node);
      node_of_[op] = static_cast<uint32_t>(nodes_.size());
      Add(std::move(node));
    }
  }

  // What gloo does begins on a thread of its own, but PyTorch made its record function within the
  // call of c10d, right after that one's: it counts as of that thread. What runs inside does not.
  void SetCollectives() {
    std::unordered_map<uint64_t, size_t> by_record;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].record_function != 0) by_record.emplace(nodes_[i].record_function, i);
    }
    std::unordered_map<uint64_t, uint64_t> moved;  // nodes that are of another thread, their own
    for (TraceNode& node : nodes_) {
      if (node.op == kNone || !node.name.starts_with(kGloo)) continue;
      const auto made = by_record.find(node.record_function - 1);
      if (made == by_record.end() || !nodes_[made->second].name.starts_with(kDistributed)) continue;
      if (node.thread == nodes_[made->second].thread) continue;
      moved.emplace(node.id, threads_[ops_.writer[node.op]].node);
      node.thread = nodes_[made->second].thread;
      node.parent = nodes_[made->second].id;
    }
    for (TraceNode& node : nodes_) {
      const auto found = moved.find(node.parent);
      if (found != moved.end()) node.parent = found->second;
    }
  }

  void TakeValues(uint32_t op, TraceNode* node) {
    const auto found = joined_.find(op);
    if (found == joined_.end() || !found->second.inputs) {
      ++without_values_;
      return;
    }
    RecordedValues& inputs = *found->second.inputs;
    node->record_function = inputs.record_function;
    node->schema = schemas_.Of(node->name, inputs);
    node->inputs = std::move(inputs.values);
    if (found->second.outputs) node->outputs = std::move(found->second.outputs->values);
    for (auto* const side : {&node->inputs, &node->outputs}) {
      for (TraceValue& value : *side) schemas_.NameKind(&value);
    }
  }

  // Which thread made a node of the backward pass: that of the operator with its number. Those
  // without one, of leaves, are of the only thread that made others.
  void SetForward() {
    std::unordered_map<int64_t, std::vector<uint32_t>> made;  // nodes by sequence
    std::map<uint64_t, size_t> makers;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].op == kNone || nodes_[i].sequence < 0) continue;
      if (nodes_[i].scope != kBackwardScope) made[nodes_[i].sequence].push_back(i);
    }
    for (TraceNode& node : nodes_) {
      if (node.op == kNone || node.scope != kBackwardScope) continue;
      const auto found = made.find(node.sequence);
      if (node.sequence < 0 || found == made.end()) continue;
      for (const uint32_t maker : found->second) {
        if (nodes_[maker].start <= node.start) node.forward_thread = nodes_[maker].thread;
      }
      ++makers[node.forward_thread];
    }
    for (TraceNode& node : nodes_) {
      if (node.op == kNone || node.scope != kBackwardScope) continue;
      if (node.forward_thread == 0 && makers.size() == 1) {
        node.forward_thread = makers.begin()->first;
      }
      SetForwardParent(&node);
    }
  }

  // The node that is open on that thread as the node begins.
  void SetForwardParent(TraceNode* node) const {
    for (const auto& [writer, thread] : threads_) {
      if (thread.number != node->forward_thread || thread.node == 0) continue;
      node->forward_parent = ParentAt(thread, node->start, node->start);
      if (writer == ops_.writer[node->op]) {
        node->forward_parent = node->parent;
        return;
      }
      const auto end = std::upper_bound(ops_.start.begin(), ops_.start.end(), node->start);
      for (auto op = static_cast<uint32_t>(end - ops_.start.begin()); op-- != 0;) {
        if (ops_.writer[op] != writer || node_of_[op] == kNone) continue;
        for (uint32_t around = op; around != kNone && around < ops_.size();
             around = ops_.parent[around]) {
          if (ops_.end[around] < node->start || node_of_[around] == kNone) continue;
          node->forward_parent = nodes_[node_of_[around]].id;
          return;
        }
        return;
      }
    }
  }

  // Tensors and storages by numbers from those of the nodes on, by address.
  void Number() {
    for (TraceNode& node : nodes_) {
      for (TraceValue& value : node.inputs) Number(&value);
      for (TraceValue& value : node.outputs) Number(&value);
    }
  }

  void Number(TraceValue* value) {
    for (TraceValue& element : value->elements) Number(&element);
    if (value->kind != TraceValue::Kind::kTensor) return;
    value->tensor = NumberOf(value->tensor);
    const bool has_storage = value->integer != 0;
    value->storage = has_storage ? NumberOf(value->storage) : 0;
  }

  uint64_t NumberOf(uint64_t address) {
    const auto [at, is_new] = numbers_.try_emplace(address, next_);
    if (is_new) ++next_;
    return at->second;
  }

  uint64_t Add(TraceNode node) {
    node.id = next_++;
    nodes_.push_back(std::move(node));
    return nodes_.back().id;
  }

  ExecutionTrace Ordered() {
    ExecutionTrace made;
    made.without_values = without_values_;
    // A child ends no later than its parent and has a greater number.
    std::stable_sort(nodes_.begin(), nodes_.end(), [](const TraceNode& a, const TraceNode& b) {
      return std::pair(a.end, b.id) < std::pair(b.end, a.id);
    });
    made.nodes = std::move(nodes_);
    TraceNode process;
    process.id = process.parent = kProcessNode;
    process.name = kProcessName;
    made.nodes.push_back(std::move(process));
    return made;
  }

  const Trace& trace_;
  const Operators& ops_;
  OperatorSchemas schemas_;
  int64_t from_, to_;
  std::map<uint16_t, Thread> threads_;  // by writer
  std::map<uint32_t, Joined> joined_;   // by operator
  std::vector<TraceNode> nodes_;
  std::vector<uint32_t> node_of_;  // by operator
  std::unordered_map<uint64_t, uint64_t> numbers_;
  uint64_t next_ = kProcessNode + 1, without_values_ = 0;
};

}  // namespace

ExecutionTrace BuildExecutionTrace(const Trace& trace, int64_t from, int64_t to) {
  return Builder(trace, from, to).Build();
}

}  // namespace ranktap::collector
