#include "collector/facts/graph_nodes.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace ranktap::collector {
namespace {

struct Making {
  int64_t time;
  size_t node;  // index into the nodes
  bool operator<(const Making& other) const { return time < other.time; }
};
using MakingsByWriter = std::map<uint16_t, std::vector<Making>>;

// Walks a writer's spans and its makings together: calls take(span row, node) with the span that
// began last of those that are open when the node is made. `rows` are sorted by start.
template <typename Spans, typename Take>
void MatchInnermost(const Spans& spans, const std::vector<uint32_t>& rows,
                    const std::vector<Making>& makings, Take&& take) {
  std::vector<uint32_t> open;
  size_t next = 0;
  for (const Making& making : makings) {
    for (; next < rows.size() && spans.start[rows[next]] <= making.time; ++next) {
      while (!open.empty() && spans.end[open.back()] < spans.start[rows[next]]) open.pop_back();
      open.push_back(rows[next]);
    }
    while (!open.empty() && spans.end[open.back()] < making.time) open.pop_back();
    if (!open.empty()) take(open.back(), making.node);
  }
}

template <typename Spans, typename Take>
void MatchSpans(const Spans& spans, const MakingsByWriter& makings, Take&& take) {
  std::map<uint16_t, std::vector<uint32_t>> rows;
  for (uint32_t row = 0; row < spans.size(); ++row) {
    if (makings.contains(spans.writer[row])) rows[spans.writer[row]].push_back(row);
  }
  for (auto& [writer, of_writer] : rows) {
    std::stable_sort(of_writer.begin(), of_writer.end(),
                     [&](uint32_t a, uint32_t b) { return spans.start[a] < spans.start[b]; });
    MatchInnermost(spans, of_writer, makings.at(writer), take);
  }
}

// A clone is what its original is; clones of clones, too. CUPTI tells of a copy that an
// instantiation makes twice: as made, then as a clone (13.0 on an H100).
void AddClones(const Trace& trace, std::vector<GraphNode>* nodes) {
  std::unordered_map<uint64_t, size_t> known;
  for (size_t i = 0; i < nodes->size(); ++i) known[(*nodes)[i].id] = i;
  for (const proto::ResourceEvent& event : trace.resources) {
    if (event.change != proto::ResourceChange::kNodeCloned) continue;
    const auto original = known.find(event.parent);
    if (original == known.end()) continue;
    GraphNode clone = (*nodes)[original->second];
    clone.id = event.id;
    const auto [at, is_new] = known.try_emplace(event.id, nodes->size());
    if (is_new) {
      nodes->push_back(clone);
    } else {
      (*nodes)[at->second] = clone;
    }
  }
}

std::vector<GraphNode> MakeGraphNodes(const Trace& trace) {
  std::vector<GraphNode> nodes;
  MakingsByWriter makings;
  for (const proto::ResourceEvent& event : trace.resources) {
    if (event.change != proto::ResourceChange::kNodeCreated || event.id == 0) continue;
    // In a row this field says who wrote it (collector/trace/load/event_tables.cc).
    const uint16_t writer = event.header.text_bytes;
    makings[writer].push_back({static_cast<int64_t>(event.time_ticks), nodes.size()});
    GraphNode& node = nodes.emplace_back();
    node.id = event.id;
  }
  if (nodes.empty()) return nodes;
  for (auto& [writer, of_writer] : makings) std::sort(of_writer.begin(), of_writer.end());
  MatchSpans(trace.api_calls, makings, [&](uint32_t call, size_t node) {
    nodes[node].api = trace.api_calls.api[call];
    nodes[node].stack = trace.api_calls.stack.At(call);
    nodes[node].has_call = true;
  });
  MatchSpans(trace.ranges, makings, [&](uint32_t range, size_t node) {
    nodes[node].range = trace.ranges.name[range];
    nodes[node].has_range = true;
  });
  AddClones(trace, &nodes);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const GraphNode& a, const GraphNode& b) { return a.id < b.id; });
  return nodes;
}

struct Kept {
  std::vector<GraphNode> nodes;
};

}  // namespace

const std::vector<GraphNode>& GraphNodes(const Trace& trace) {
  return trace.memo.Get<Kept>([&trace] { return Kept{MakeGraphNodes(trace)}; }).nodes;
}

const GraphNode* FindGraphNode(const Trace& trace, uint64_t id) {
  const std::vector<GraphNode>& nodes = GraphNodes(trace);
  const auto found =
      std::lower_bound(nodes.begin(), nodes.end(), id,
                       [](const GraphNode& node, uint64_t wanted) { return node.id < wanted; });
  return found != nodes.end() && found->id == id ? &*found : nullptr;
}

}  // namespace ranktap::collector
