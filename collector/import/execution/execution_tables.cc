#include "collector/import/execution/execution_tables.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_set>

#include "collector/file/json.h"
#include "collector/import/finish_trace.h"
#include "collector/import/optional_values.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kShortest = 1000;  // ns, of what has no duration

// Hostile durations must not overflow a sum.
int64_t LengthOf(const ExecutionNode& node) {
  constexpr int64_t kLongest = int64_t{7} * 24 * 3600 * 1'000'000'000;
  return std::clamp<int64_t>(node.duration_ns, 0, kLongest);
}

}  // namespace

bool IsExecutionRoot(const std::string& name) {
  return name == "[pytorch|profiler|execution_trace|thread]" ||
         name == "[pytorch|profiler|execution_trace|process]" || name == kGroupsNode;
}

void AddExecutionGroups(const std::string& json, Trace* trace) {
  const Json list = ParseJson(json);
  if (!list.is_array()) return;
  for (const Json& entry : list) {
    if (!entry.is_object()) continue;
    ProcessGroup group;
    group.name = entry.TextOf("pg_name");
    group.description = entry.TextOf("pg_desc");
    group.backend = entry.TextOf("backend_config");
    for (const char* key : {"group_size", "pg_size"}) {
      const Json& size = entry[key];
      if (size.is_number_unsigned()) group.size = Narrow(size.get<uint64_t>());
    }
    const Json& ranks = entry["ranks"];
    for (size_t i = 0; ranks.is_array() && i < ranks.size(); ++i) {
      if (ranks[i].is_number_unsigned()) group.ranks.push_back(Narrow(ranks[i].get<uint64_t>()));
    }
    const bool known = std::ranges::any_of(
        trace->process_groups, [&group](const auto& other) { return other.name == group.name; });
    if (!known) trace->process_groups.push_back(std::move(group));
  }
}

std::optional<uint32_t> NumberBeforeEnding(const std::string& path) {
  std::string_view name = path;
  name.remove_prefix(std::min(name.rfind('/') + 1, name.size()));
  for (const std::string_view ending : {".gz", ".json", ".et"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  constexpr size_t kMostDigits = 7;
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  if (begin == name.size() || name.size() - begin > kMostDigits) return std::nullopt;
  if (begin > 0 && name[begin - 1] != '.') return std::nullopt;
  return static_cast<uint32_t>(std::stoul(std::string(name.substr(begin))));
}

uint32_t ExecutionTables::TextOf(const std::string& text) {
  if (text.empty()) return 0;
  const auto [at, is_new] = texts_.try_emplace(text, 0);
  if (is_new) at->second = trace_->dictionary.AppendString(text);
  return at->second;
}

uint16_t ExecutionTables::WriterOf(uint64_t thread) {
  const auto known = writers_.find(thread);
  if (known != writers_.end()) return known->second;
  if (trace_->writers.size() >= kMostWriters) return kMostWriters - 1;  // a hostile file
  const auto index = static_cast<uint16_t>(trace_->writers.size());
  Writer& writer = trace_->writers.emplace_back();
  writer.id = index;
  writer.thread = static_cast<int32_t>(Narrow(thread));
  writers_.emplace(thread, index);
  return index;
}

void ExecutionTables::LayOut() {
  std::ranges::stable_sort(nodes_, {}, &ExecutionNode::id);
  std::unordered_map<uint64_t, size_t> index;
  for (size_t i = 0; i < nodes_.size(); ++i) index.emplace(nodes_[i].id, i);
  // Ids are given as operators start: what has a smaller id than its parent hangs off nothing.
  const auto parent_of = [&](size_t i) {
    const auto found = index.find(nodes_[i].parent);
    return found == index.end() || found->second >= i ? nodes_.size() : found->second;
  };
  int64_t now = 0;
  std::vector<size_t> open;
  std::unordered_map<int64_t, int64_t> streams;  // until when each is busy
  const auto close = [&](size_t until) {
    while (!open.empty() && open.back() != until) {
      ExecutionNode& node = nodes_[open.back()];
      now += LengthOf(node) > 0 ? 0 : kShortest;
      node.duration_ns = now - *node.start_ns;
      open.pop_back();
    }
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    ExecutionNode& node = nodes_[i];
    const size_t parent = parent_of(i);
    if (node.on_device) {
      int64_t& busy = streams[node.stream];
      node.duration_ns = std::max(LengthOf(node), kShortest);
      node.start_ns = std::max(busy, now);
      busy = *node.start_ns + node.duration_ns;
      continue;
    }
    if (parent == nodes_.size() || std::ranges::find(open, parent) == open.end()) {
      close(nodes_.size());
    } else {
      close(parent);
    }
    node.start_ns = now;
    now += LengthOf(node);
    open.push_back(i);
  }
  close(nodes_.size());
}

uint32_t ExecutionTables::CollectiveOf(const ExecutionNode& node) {
  auto& all = trace_->collectives;
  const auto known = std::ranges::find(all, *node.collective);
  if (known != all.end()) return static_cast<uint32_t>(known - all.begin()) + 1;
  all.push_back(*node.collective);
  return static_cast<uint32_t>(all.size());
}

void ExecutionTables::AddOperator(const ExecutionNode& node) {
  Operators& ops = trace_->operators;
  const size_t row = ops.size();
  ops.start.push_back(*node.start_ns);
  ops.end.push_back(*node.start_ns + LengthOf(node));
  ops.name.push_back(TextOf(node.name));
  ops.writer.push_back(WriterOf(node.thread));
  ops.kind.push_back(static_cast<uint8_t>(node.scope == kUserScope ? OperatorKind::kAnnotation
                                                                   : OperatorKind::kOperator));
  SetOptional(&ops.external_id, row, Narrow(node.id));
  SetOptional(&ops.record_function, row, node.record_function);
  if (node.sequence >= 0) {
    SetOptional(&ops.sequence, row, static_cast<uint64_t>(node.sequence) + 1);
  }
  SetOptional(&ops.forward_thread, row, Narrow(node.forward_thread));
  SetOptional(&ops.scope, row, static_cast<uint8_t>(std::min<uint64_t>(node.scope, 255)));
  SetOptional(&ops.shapes, row, TextOf(node.shapes));
  SetOptional(&ops.strides, row, TextOf(node.strides));
  SetOptional(&ops.types, row, TextOf(node.types));
  SetOptional(&ops.values, row, TextOf(node.values));
  SetOptional(&ops.output_shapes, row, TextOf(node.output_shapes));
  SetOptional(&ops.output_types, row, TextOf(node.output_types));
  if (node.collective) SetOptional(&ops.collective, row, CollectiveOf(node));
}

void ExecutionTables::AddCall(const ExecutionNode& node) {
  ApiCalls& calls = trace_->api_calls;
  calls.start.push_back(*node.start_ns);
  calls.end.push_back(*node.start_ns + LengthOf(node));
  calls.correlation.push_back(0);
  const auto [at, is_new] = apis_.try_emplace(node.name, 0);
  if (is_new) {
    at->second = trace_->dictionary.AppendApi({proto::ApiDomain::kRuntime, 0, node.name});
  }
  calls.api.push_back(at->second);
  calls.writer.push_back(WriterOf(node.thread));
}

void ExecutionTables::AddWork(const ExecutionNode& node) {
  const bool is_copy = node.name.starts_with("Memcpy"), is_set = node.name.starts_with("Memset");
  DeviceWork& work = is_copy  ? static_cast<DeviceWork&>(trace_->copies)
                     : is_set ? static_cast<DeviceWork&>(trace_->memsets)
                              : trace_->kernels;
  const size_t row = work.size();
  work.start.push_back(*node.start_ns);
  work.end.push_back(*node.start_ns + LengthOf(node));
  work.correlation.push_back(0);
  const auto [lane, is_new] =
      lanes_.try_emplace(node.stream, static_cast<uint32_t>(trace_->lanes.size()));
  if (is_new) trace_->lanes.push_back({0, 0, Narrow(static_cast<uint64_t>(node.stream))});
  work.lane.push_back(lane->second);
  SetOptional(&work.external_id, row, Narrow(node.parent));
  if (is_copy) {
    trace_->copies.bytes.push_back(node.bytes);
    SetOptional(&trace_->copies.bytes_unknown, row, node.bytes == 0 ? 1 : 0);
    trace_->copies.copy_kind.push_back(0);
    trace_->copies.src_kind.push_back(0);
    trace_->copies.dst_kind.push_back(0);
  } else if (is_set) {
    trace_->memsets.bytes.push_back(node.bytes);
    SetOptional(&trace_->memsets.bytes_unknown, row, node.bytes == 0 ? 1 : 0);
    trace_->memsets.memory_kind.push_back(0);
  } else {
    trace_->kernels.name.push_back(TextOf(node.name));
    trace_->kernels.shape.push_back(0);
    if (node.collective) SetOptional(&trace_->kernels.collective, row, CollectiveOf(node));
  }
}

// Rows are sorted by now: external ids are the nodes' ids.
void ExecutionTables::AddTensors() {
  const Operators& ops = trace_->operators;
  std::unordered_map<uint32_t, uint32_t> rows;
  for (uint32_t row = 0; row < ops.size(); ++row) rows.emplace(ops.external_id.At(row), row);
  for (const ExecutionNode& node : nodes_) {
    const auto row = rows.find(Narrow(node.id));
    if (node.on_device || row == rows.end()) continue;
    for (const ExecutionTensor& tensor : node.tensors) {
      const int64_t time = tensor.is_output ? ops.end[row->second] : ops.start[row->second];
      trace_->tensor_uses.push_back({time, row->second, tensor.place, tensor.element,
                                     tensor.is_output, tensor.tensor, tensor.storage});
    }
  }
  std::ranges::stable_sort(trace_->tensor_uses, {}, &TensorUse::time);
}

bool ExecutionTables::Finish() {
  const bool timed = std::ranges::any_of(
      nodes_, [](const ExecutionNode& node) { return node.start_ns && *node.start_ns != 0; });
  if (!timed) LayOut();
  for (ExecutionNode& node : nodes_) {
    if (IsExecutionRoot(node.name)) continue;
    if (!node.start_ns) node.start_ns = 0;
    if (node.on_device) {
      AddWork(node);
    } else if (node.is_call) {
      AddCall(node);
    } else {
      AddOperator(node);
    }
    ++trace_->events;
  }
  FinishTrace(trace_);
  AddTensors();
  return !timed;
}

}  // namespace ranktap::collector
