#include "collector/report/framework/op_summary.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "collector/facts/device_timeline.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/evaluation_forwards.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/framework/op_tree.h"
#include "collector/facts/framework/python_stacks.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/framework/custom_flops.h"
#include "collector/report/framework/op_shares.h"
#include "collector/report/human_units.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

constexpr std::array<std::string_view, kPasses> kPassNames = {"forward", "backward", "recompute"};

std::string Rewritten(std::string_view name) {
  return name.starts_with("ProfilerStep#") ? "ProfilerStep*" : std::string(name);
}

class Averages {
 public:
  explicit Averages(const ReportOptions& options) : options_(options) {}

  OpRow& RowOf(std::string name, bool on_device, bool is_annotation, std::string_view shapes,
               std::vector<std::string> stack, std::string_view module = {},
               std::string_view pass = {}) {
    std::string key = name + '\0' + (on_device ? 'd' : 'c') + (is_annotation ? 'a' : 'o');
    if (options_.by_shape) key.append(1, '\0').append(shapes);
    if (options_.by_module) key.append(1, '\0').append(module).append(1, '\0').append(pass);
    for (const std::string& frame : stack) key.append(1, '\0').append(frame);
    const auto [at, is_new] = by_key_.try_emplace(std::move(key), rows_.size());
    if (is_new) {
      OpRow& row = rows_.emplace_back();
      row.name = std::move(name);
      row.on_device = on_device;
      row.is_annotation = is_annotation;
      if (options_.by_shape) row.shapes = shapes.empty() ? "[]" : shapes;  // as torch's table
      row.stack = std::move(stack);
      row.module = module;
      row.pass = pass;
    }
    return rows_[at->second];
  }
  std::vector<OpRow> Take() { return std::move(rows_); }

 private:
  const ReportOptions& options_;
  std::unordered_map<std::string, size_t> by_key_;
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

void AddNode(const Trace& trace, const std::vector<HostNode>& nodes, size_t index,
             uint32_t stack_id, const FlopsByRule& counted, const std::vector<OpPlace>& places,
             const ReportOptions& options, Averages* averages) {
  const HostNode& node = nodes[index];
  std::string_view shapes, module, pass;
  std::vector<std::string> stack;
  bool is_annotation = false;
  if (node.kind == HostNode::Kind::kOperator) {
    const Operators& ops = trace.operators;
    shapes = trace.dictionary.String(ops.shapes.At(node.row));
    is_annotation = static_cast<OperatorKind>(ops.kind[node.row]) == OperatorKind::kAnnotation;
    if (!places.empty()) {
      module = trace.dictionary.String(places[node.row].module);
      const OpPlace& place = places[node.row];
      if (!place.in_no_pass) pass = kPassNames[static_cast<size_t>(place.pass)];
    }
  }
  if (stack_id != 0) {
    stack =
        InnermostFrames(trace.dictionary.String(stack_id), static_cast<size_t>(options.by_stack));
  }
  const std::string_view name = NameOf(trace, node);
  OpRow& row = averages->RowOf(Rewritten(name), false, is_annotation, shapes, std::move(stack),
                               module, pass);
  const int64_t length = node.end - node.start;
  if (row.count++ == 0) row.is_inside = IsInside(nodes, node);
  row.cpu_ns += length;
  row.self_cpu_ns += length - node.children_ns;
  row.device_ns += node.device_ns;
  row.self_device_ns += node.own_device_ns;
  row.cpu_bytes += node.cpu_bytes;
  row.self_cpu_bytes += node.cpu_bytes - node.children_cpu_bytes;
  row.device_bytes += node.device_bytes;
  row.self_device_bytes += node.device_bytes - node.children_device_bytes;
  if (node.kind != HostNode::Kind::kOperator) return;
  row.flops += counted[0][node.row].flops;
  row.counted_flops += counted[1][node.row].flops;
}

void AddOnDevice(std::string name, bool is_annotation, int64_t length, Averages* averages) {
  OpRow& row = averages->RowOf(std::move(name), true, is_annotation, "", {});
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
    OpRow& row = averages->RowOf("[memory]", false, false, "", {});
    ++row.count;
    int64_t OpRow::*const total =
        all.device_type.At(i) == 0 ? &OpRow::cpu_bytes : &OpRow::device_bytes;
    int64_t OpRow::*const self =
        all.device_type.At(i) == 0 ? &OpRow::self_cpu_bytes : &OpRow::self_device_bytes;
    row.*total += all.bytes[i];
    row.*self += all.bytes[i];
  }
}

struct SelfTotals {
  int64_t cpu_ns = 0, device_ns = 0;
};

SelfTotals TotalSelfTimes(const std::vector<OpRow>& rows) {
  SelfTotals totals;
  for (const OpRow& row : rows) {
    totals.cpu_ns += row.self_cpu_ns;
    if (row.on_device && !row.is_annotation) totals.device_ns += row.self_device_ns;
  }
  return totals;
}

// As torch's table() does without a key.
void SortOps(const SelfTotals& totals, std::vector<OpRow>* rows) {
  int64_t OpRow::*const by = totals.device_ns > 0 ? &OpRow::self_device_ns : &OpRow::self_cpu_ns;
  SortRows(rows, [by](const OpRow& a, const OpRow& b) { return a.*by > b.*by; });
}

struct Line {
  const Trace* trace = nullptr;
  OpRow op;
  SelfTotals totals;  // of the rank
  bool knows_flops = true;
};

// Never 0 where nobody knows.
Cell FlopsOf(const Line& line, int64_t flops) {
  return flops != 0 || line.knows_flops ? Cell(flops) : Cell();
}

// Where there is no room for all: the times that torch's users sort by, and the rank where rows of
// several would look alike.
ColumnsOf<Line> Columns(const ReportOptions& options, bool several_ranks) {
  const bool by_stack = options.by_stack > 0;
  const Shown with_stack = by_stack ? Shown::kDetail : Shown::kAlways;
  const auto group = [](bool by) { return by ? Shown::kAlways : Shown::kDetail; };
  return {
      {"rank", Unit::kCount, kRankMeaning, [](const Line& line) { return RankCell(*line.trace); },
       several_ranks ? Shown::kAlways : Shown::kDetail},
      {"name", Unit::kText, "The operator, range or kernel.",
       [](const Line& line) { return line.op.name; }},
      {"self_cpu_percent", Unit::kPercent, "The share of the rank's self CPU time.",
       [](const Line& line) { return Percent(line.op.self_cpu_ns, line.totals.cpu_ns); },
       Shown::kDetail},
      {"self_cpu_ns", Unit::kNs, "The host's time in it, without its children.",
       [](const Line& line) { return line.op.self_cpu_ns; }},
      {"cpu_total_percent", Unit::kPercent,
       "The CPU time with children, as a share of the rank's self CPU time.",
       [](const Line& line) { return ShareOfCpu(line.op, line.totals.cpu_ns); }, Shown::kDetail},
      {"cpu_total_ns", Unit::kNs, "The host's time in it, children included.",
       [](const Line& line) { return line.op.cpu_ns; }, with_stack},
      {"cpu_avg_ns", Unit::kNs, "The host's mean time in one call, children included.",
       [](const Line& line) { return line.op.cpu_ns / line.op.count; }, Shown::kDetail},
      {"self_cuda_ns", Unit::kNs, "The device work that it launched itself.",
       [](const Line& line) { return line.op.self_device_ns; }, with_stack},
      {"self_cuda_percent", Unit::kPercent, "The share of the rank's CUDA time; empty: a range's.",
       [](const Line& line) { return ShareOfDevice(line.op, line.totals.device_ns); },
       Shown::kDetail},
      {"cuda_total_ns", Unit::kNs, "The device work that it and its children launched.",
       [](const Line& line) { return line.op.device_ns; }, with_stack},
      {"cuda_avg_ns", Unit::kNs, "The mean device work of one call, children included.",
       [](const Line& line) { return line.op.device_ns / line.op.count; }, Shown::kDetail},
      {"cpu_mem_bytes", Unit::kBytes,
       "The host memory allocated less the memory freed, children included.",
       [](const Line& line) { return line.op.cpu_bytes; }, Shown::kDetail},
      {"self_cpu_mem_bytes", Unit::kBytes,
       "The host memory allocated less the memory freed, without children.",
       [](const Line& line) { return line.op.self_cpu_bytes; }, Shown::kDetail},
      {"cuda_mem_bytes", Unit::kBytes,
       "The device memory allocated less the memory freed, children included.",
       [](const Line& line) { return line.op.device_bytes; }, Shown::kDetail},
      {"self_cuda_mem_bytes", Unit::kBytes,
       "The device memory allocated less the memory freed, without children.",
       [](const Line& line) { return line.op.self_device_bytes; }, Shown::kDetail},
      {"calls", Unit::kCount, "The operator's calls, or the kernel's launches.",
       [](const Line& line) { return line.op.count; }},
      {"input_shapes", Unit::kText, "The shapes that the operator took.",
       [](const Line& line) { return line.op.shapes; }, group(options.by_shape)},
      {"source", Unit::kText, "The frames of the Python stack (--group-by-stack).",
       [](const Line& line) { return Joined(line.op.stack); },
       by_stack ? Shown::kProse : Shown::kDetail},
      {"module", Unit::kText,
       "The torch.nn.Module whose forward it belongs to (--group-by-module).",
       [](const Line& line) { return line.op.module; }, group(options.by_module)},
      {"pass", Unit::kText, "The pass that ran it: forward, backward or recompute.",
       [](const Line& line) { return line.op.pass; }, group(options.by_module)},
      {"flops", Unit::kFlops,
       "The operations as torch.profiler counts them: matrix products, convolutions, add and mul.",
       [](const Line& line) { return FlopsOf(line, line.op.flops); }, Shown::kDetail},
      {"counted_flops", Unit::kFlops,
       "The operations as FlopCounterMode counts them: attention and convolutions' backwards too.",
       [](const Line& line) { return FlopsOf(line, line.op.counted_flops); }, Shown::kDetail},
      {"where", Unit::kText, "host, or device for a kernel or an annotation there.",
       [](const Line& line) { return line.op.on_device ? "device" : "host"; }, Shown::kDetail},
  };
}

// The keys of torch's table(sort_by=): older releases say cuda, newer ones device.
void NameAsTorch(Table* table) {
  constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"cpu_total_ns", "cpu_time_total"},
      {"self_cpu_ns", "self_cpu_time_total"},
      {"cuda_total_ns", "cuda_time_total"},
      {"self_cuda_ns", "self_cuda_time_total"},
      {"cpu_avg_ns", "cpu_time"},
      {"cuda_avg_ns", "cuda_time"},
      {"cpu_mem_bytes", "cpu_memory_usage"},
      {"self_cpu_mem_bytes", "self_cpu_memory_usage"},
      {"cuda_mem_bytes", "cuda_memory_usage"},
      {"self_cuda_mem_bytes", "self_cuda_memory_usage"},
      {"calls", "count"}};
  for (TableColumn& column : table->columns) {
    for (const auto& [name, key] : kKeys) {
      if (column.name != name) continue;
      std::string of_device(key);
      if (const size_t at = of_device.find("cuda"); at != of_device.npos) {
        of_device.replace(at, 4, "device");
      }
      column.also = {std::string(key), std::move(of_device)};
    }
  }
}

// ", of 3 recorded steps and 1 forward that only evaluates", or what of that is there.
std::string OfSteps(const Trace& trace) {
  const RecordedOperators operators = SplitByEvaluation(trace);
  const std::vector<bool> recorded = RecordedSteps(trace, operators.training);
  const auto steps = std::count(recorded.begin(), recorded.end(), true);
  std::string text;
  if (steps > 0) text = fmt::format(", of {} recorded step{}", steps, steps == 1 ? "" : "s");
  if (operators.evaluations > 0) {
    text += fmt::format("{} {} forward{} that only evaluate{}", text.empty() ? ", of" : " and",
                        operators.evaluations, operators.evaluations == 1 ? "" : "s",
                        operators.evaluations == 1 ? "s" : "");
  }
  return text;
}

// "rank 0: self CPU time total 1.909 ms, self CUDA time total 350.7 us, of 3 recorded steps"
std::string NoteOf(const Trace& trace, const SelfTotals& totals) {
  std::string note =
      fmt::format("{}: self CPU time total {}", RankName(trace), FormatNs(totals.cpu_ns));
  if (totals.device_ns > 0) {
    note += fmt::format(", self CUDA time total {}", FormatNs(totals.device_ns));
  }
  if (!trace.is_ours()) return note;
  if (trace.operators.size() == 0) {
    const bool has_modules = !ModuleSpans(trace).empty();
    return has_modules ? note +
                             "; no step was recorded operator by operator: --schedule counts "
                             "steps from the begin of the window"
                       : note;
  }
  return note + OfSteps(trace);
}

}  // namespace

std::vector<OpRow> AverageOps(const Trace& trace, const ReportOptions& options) {
  const std::vector<HostNode> nodes = BuildOpTree(trace);
  const FlopsByRule counted = {CountFlops(trace, FlopRule::kProfiler),
                               CountFlops(trace, FlopRule::kCounter)};
  Averages averages(options);
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  size_t next = 0;
  const auto add_spans_before = [&](int64_t time) {
    for (; next < spans.size() && spans[next].start < time; ++next) {
      AddOnDevice(NameOf(trace, spans[next]), false, spans[next].end - spans[next].start,
                  &averages);
    }
  };
  const std::vector<uint32_t> stacks =
      options.by_stack > 0 ? StacksOf(trace, nodes) : std::vector<uint32_t>(nodes.size(), 0);
  const std::vector<OpPlace> places =
      options.by_module ? PlaceOperators(trace) : std::vector<OpPlace>();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const HostNode& node = nodes[i];
    if (node.gone || node.kind == HostNode::Kind::kPython) continue;
    add_spans_before(node.start);
    AddNode(trace, nodes, i, stacks[i], counted, places, options, &averages);
  }
  add_spans_before(INT64_MAX);
  const DeviceAnnotations& annotations = trace.device_annotations;
  for (size_t i = 0; i < annotations.size(); ++i) {
    AddOnDevice(Rewritten(trace.dictionary.String(annotations.name[i])), true,
                annotations.end[i] - annotations.start[i], &averages);
  }
  AddStrayMemory(trace, nodes, &averages);
  return averages.Take();
}

Table TabulateOps(const Run& run, const ReportOptions& options) {
  std::vector<Line> lines;
  std::vector<std::string> notes;
  for (const Trace& trace : run.traces) {
    std::vector<OpRow> rows = AverageOps(trace, options);
    const SelfTotals totals = TotalSelfTimes(rows);
    if (options.top_level) {
      std::erase_if(rows, [](const OpRow& row) { return row.is_inside; });
    }
    SortOps(totals, &rows);
    const auto unknown = NamesOfUnknownFlops(trace);
    for (OpRow& row : rows) {
      const bool knows_flops = !unknown.contains(row.name);
      lines.push_back({&trace, std::move(row), totals, knows_flops});
    }
    notes.push_back(NoteOf(trace, totals));
  }
  Table table = TableOf("Operators, as torch's key_averages()",
                        Columns(options, run.traces.size() > 1), lines);
  NameAsTorch(&table);
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector
