#include "collector/facts/framework/op_tree.h"

#include <algorithm>

#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

using Kind = HostNode::Kind;

// Among those that are there, by start, of equal starts the longer first.
template <typename Table>
void AddNodes(const Trace& trace, const Table& table, Kind kind, std::vector<HostNode>* nodes) {
  const size_t first = nodes->size();
  for (uint32_t i = 0; i < table.size(); ++i) {
    HostNode node;
    node.kind = kind;
    node.writer = table.writer[i];
    node.row = i;
    node.start = table.start[i];
    node.end = table.end[i];
    if (kind == Kind::kOperator && IsHiddenOp(NameOf(trace, node))) continue;
    nodes->push_back(node);
  }
  MergeRows(nodes, first, [](const HostNode& a, const HostNode& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
}

// torch/autograd/profiler_util.py, _populate_cpu_children.
void Nest(size_t writers, std::vector<HostNode>* nodes) {
  std::vector<std::vector<uint32_t>> open(writers);
  for (uint32_t i = 0; i < nodes->size(); ++i) {
    HostNode& node = (*nodes)[i];
    if (node.writer >= writers) continue;
    std::vector<uint32_t>& stack = open[node.writer];
    while (!stack.empty()) {
      const HostNode& around = (*nodes)[stack.back()];
      if (node.start < around.end && node.end <= around.end) break;
      stack.pop_back();
    }
    if (!stack.empty()) {
      node.parent = stack.back();
      ++(*nodes)[stack.back()].children;
    }
    stack.push_back(i);
  }
}

// _remove_dup_nodes: an only child of its parent's name is one with it. Parents come before their
// children, so that one pass down reaches chains of any length.
void RemoveDuplicates(const Trace& trace, std::vector<HostNode>* nodes) {
  for (HostNode& node : *nodes) {
    while (node.parent != kNone && (*nodes)[node.parent].gone) {
      node.parent = (*nodes)[node.parent].parent;
    }
    if (node.parent == kNone) continue;
    HostNode& parent = (*nodes)[node.parent];
    if (parent.children != 1 || NameOf(trace, parent) != NameOf(trace, node)) continue;
    node.gone = true;
    parent.children = node.children;
    // torch hands the child's kernels to the parent in place of its own.
    parent.own_device_ns = node.own_device_ns;
  }
}

void AddDeviceTime(const Trace& trace, std::vector<HostNode>* nodes) {
  std::vector<int64_t> by_op(trace.operators.size());
  const auto add = [&](const DeviceWork& work) {
    for (size_t i = 0; i < work.size(); ++i) {
      const uint32_t op = work.op.At(i);
      if (op != 0 && work.start[i] != kUntimed) by_op[op - 1] += work.end[i] - work.start[i];
    }
  };
  add(trace.kernels), add(trace.copies), add(trace.memsets);
  for (HostNode& node : *nodes) {
    if (node.kind == Kind::kOperator) node.own_device_ns = by_op[node.row];
  }
}

// Allocations are summed by time alone, whoever made them, as torch does.
void AddMemory(const Trace& trace, OpTree* tree) {
  const Allocations& all = trace.allocations;
  if (all.size() == 0) return;
  std::vector<int64_t> cpu(all.size() + 1), device(all.size() + 1);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool on_cpu = all.device_type.At(i) == 0;
    cpu[i + 1] = cpu[i] + (on_cpu ? all.bytes[i] : 0);
    device[i + 1] = device[i] + (on_cpu ? 0 : all.bytes[i]);
  }
  tree->memory.reserve(tree->nodes.size());
  for (const HostNode& node : tree->nodes) {
    const auto first = std::lower_bound(all.start.begin(), all.start.end(), node.start);
    const auto last = std::upper_bound(first, all.start.end(), node.end);
    const auto from = first - all.start.begin(), to = last - all.start.begin();
    tree->memory.push_back(
        {.cpu_bytes = cpu[to] - cpu[from], .device_bytes = device[to] - device[from]});
  }
}

void SumUp(OpTree* tree) {
  for (size_t i = tree->nodes.size(); i-- > 0;) {
    HostNode& node = tree->nodes[i];
    if (node.gone) continue;
    node.device_ns += node.own_device_ns;
    if (node.parent == kNone) continue;
    HostNode& parent = tree->nodes[node.parent];
    parent.children_ns += node.end - node.start;
    parent.device_ns += node.device_ns;
    if (tree->memory.empty()) continue;
    NodeMemory& memory = tree->memory[node.parent];
    memory.children_cpu_bytes += tree->memory[i].cpu_bytes;
    memory.children_device_bytes += tree->memory[i].device_bytes;
  }
}

}  // namespace

bool IsHiddenOp(std::string_view name) {
  for (const std::string_view hidden :
       {"profiler::_record_function_enter", "profiler::_record_function_enter_new",
        "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version"}) {
    if (name == hidden) return true;
  }
  return false;
}

std::string_view NameOf(const Trace& trace, const HostNode& node) {
  switch (node.kind) {
    case Kind::kOperator:
      return trace.dictionary.String(trace.operators.name[node.row]);
    case Kind::kPython:
      return trace.dictionary.String(trace.python_calls.name[node.row]);
    case Kind::kCall:
      return trace.dictionary.Api(trace.api_calls.api[node.row]).name;
  }
  return "";
}

OpTree BuildOpTree(const Trace& trace) {
  OpTree tree;
  std::vector<HostNode>& nodes = tree.nodes;
  nodes.reserve(trace.operators.size() + trace.python_calls.size() + trace.api_calls.size());
  AddNodes(trace, trace.operators, Kind::kOperator, &nodes);
  AddNodes(trace, trace.python_calls, Kind::kPython, &nodes);
  AddNodes(trace, static_cast<const ApiCalls&>(trace.api_calls), Kind::kCall, &nodes);
  Nest(trace.writers.size(), &nodes);
  AddDeviceTime(trace, &nodes);
  RemoveDuplicates(trace, &nodes);
  AddMemory(trace, &tree);
  SumUp(&tree);
  return tree;
}

}  // namespace ranktap::collector
