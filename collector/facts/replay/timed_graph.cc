#include "collector/facts/replay/timed_graph.h"

#include <algorithm>

namespace ranktap::collector {

std::string_view NameOf(EdgeKind kind) {
  constexpr std::array<std::string_view, kEdgeKinds> kNames = {
      "thread order",          "stream order", "launch",  "event wait", "return of a wait",
      "launch queue",          "collective",   "message", "hand-over",  "batch",
      "batch of other workers"};
  return kNames[static_cast<size_t>(kind)];
}

void GraphBuilder::Reserve(size_t nodes, size_t edges) {
  graph_.start.reserve(nodes);
  graph_.own.reserve(nodes);
  graph_.trace.reserve(nodes);
  graph_.row.reserve(nodes);
  graph_.kind.reserve(nodes);
  edges_.reserve(edges);
}

uint32_t GraphBuilder::AddNode(NodeKind kind, uint32_t trace, uint32_t row, int64_t start,
                               int64_t own) {
  graph_.start.push_back(start);
  graph_.own.push_back(std::max<int64_t>(own, 0));
  graph_.trace.push_back(trace);
  graph_.row.push_back(row);
  graph_.kind.push_back(kind);
  return static_cast<uint32_t>(graph_.start.size() - 1);
}

void GraphBuilder::AddEdge(uint32_t from, uint32_t to, EdgeKind kind, int64_t lag) {
  if (from == kNone || to == kNone) return;
  const bool is_late = graph_.end(from) > graph_.start[to] + TimedGraph::kClockNs;
  if (is_late && kind != EdgeKind::kOtherWorkers) {
    ++graph_.violated[static_cast<size_t>(kind)];
  } else {
    edges_.push_back({from, to, lag, kind});
  }
}

// Kahn's: what has no edge left to wait for is next.
void GraphBuilder::Order() {
  const size_t nodes = graph_.size();
  std::vector<uint32_t> waits(nodes), first(nodes + 1), to(edges_.size());
  for (const Edge& edge : edges_) {
    ++waits[edge.to];
    ++first[edge.from + 1];
  }
  for (size_t i = 0; i < nodes; ++i) first[i + 1] += first[i];
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  for (const Edge& edge : edges_) to[next[edge.from]++] = edge.to;
  graph_.order.reserve(nodes);
  for (uint32_t i = 0; i < nodes; ++i) {
    if (waits[i] == 0) graph_.order.push_back(i);
  }
  for (size_t at = 0; at < graph_.order.size(); ++at) {
    const uint32_t node = graph_.order[at];
    for (uint32_t e = first[node]; e < first[node + 1]; ++e) {
      if (--waits[to[e]] == 0) graph_.order.push_back(to[e]);
    }
  }
  graph_.has_cycle = graph_.order.size() != nodes;
}

TimedGraph GraphBuilder::Seal() && {
  Order();
  const size_t nodes = graph_.size();
  graph_.first_edge.assign(nodes + 1, 0);
  for (const Edge& edge : edges_) ++graph_.first_edge[edge.to + 1];
  for (size_t i = 0; i < nodes; ++i) graph_.first_edge[i + 1] += graph_.first_edge[i];
  std::vector<uint32_t> next(graph_.first_edge.begin(), graph_.first_edge.end() - 1);
  graph_.from.resize(edges_.size());
  graph_.lag.resize(edges_.size());
  graph_.edge_kind.resize(edges_.size());
  for (const Edge& edge : edges_) {
    const uint32_t at = next[edge.to]++;
    graph_.from[at] = edge.from;
    graph_.lag[at] = edge.lag;
    graph_.edge_kind[at] = edge.kind;
  }
  graph_.gap.assign(nodes, 0);
  for (uint32_t node = 0; node < nodes; ++node) {
    int64_t explained = INT64_MIN;
    for (uint32_t e = graph_.first_edge[node]; e < graph_.first_edge[node + 1]; ++e) {
      if (graph_.edge_kind[e] == EdgeKind::kOtherWorkers) continue;
      explained = std::max(explained, graph_.end(graph_.from[e]) + graph_.lag[e]);
    }
    if (explained != INT64_MIN) {
      graph_.gap[node] = std::max<int64_t>(graph_.start[node] - explained, 0);
    }
  }
  return std::move(graph_);
}

GraphEdit::GraphEdit(const TimedGraph& graph)
    : share(graph.size(), 1.0), without(graph.from.size()) {
  for (size_t e = 0; e < without.size(); ++e) {
    without[e] = graph.edge_kind[e] == EdgeKind::kOtherWorkers;
  }
}

Replayed Replay(const TimedGraph& graph, const GraphEdit& edit) {
  Replayed replayed;
  replayed.begin.resize(graph.size());
  replayed.end.resize(graph.size());
  replayed.last_edge.assign(graph.size(), kNone);
  for (const uint32_t node : graph.order) {
    int64_t free = INT64_MIN;
    for (uint32_t e = graph.first_edge[node]; e < graph.first_edge[node + 1]; ++e) {
      const int64_t until = replayed.end[graph.from[e]] + graph.lag[e];
      if (edit.without[e] || until <= free) continue;
      free = until;
      replayed.last_edge[node] = e;
    }
    const bool waits = free != INT64_MIN;
    const int64_t begin = waits ? free + graph.gap[node] : graph.start[node];
    replayed.begin[node] = begin;
    replayed.end[node] =
        begin + static_cast<int64_t>(static_cast<double>(graph.own[node]) * edit.share[node]);
  }
  return replayed;
}

}  // namespace ranktap::collector
