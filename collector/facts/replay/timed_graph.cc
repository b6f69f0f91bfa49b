#include "collector/facts/replay/timed_graph.h"

#include <algorithm>
#include <utility>

namespace ranktap::collector {

std::string_view NameOf(EdgeKind kind) {
  constexpr std::array<std::string_view, kEdgeKinds> kNames = {
      "thread order",          "stream order", "launch",  "event wait", "return of a wait",
      "launch queue",          "collective",   "message", "hand-over",  "batch",
      "batch of other workers"};
  return kNames[static_cast<size_t>(kind)];
}

void GraphBuilder::Reserve(size_t nodes) {
  graph_.start.reserve(nodes);
  graph_.own.reserve(nodes);
  graph_.trace.reserve(nodes);
  graph_.row.reserve(nodes);
  graph_.kind.reserve(nodes);
}

namespace {

template <typename T>
void TakePages(const std::vector<T>& array, PagesAhead* pages) {
  pages->Prepare(array.data(), array.size() * sizeof(T), array.capacity() * sizeof(T));
}

}  // namespace

void GraphBuilder::PrepareNodes() {
  TakePages(graph_.start, &node_pages_[0]);
  TakePages(graph_.own, &node_pages_[1]);
  TakePages(graph_.trace, &node_pages_[2]);
  TakePages(graph_.row, &node_pages_[3]);
  TakePages(graph_.kind, &node_pages_[4]);
}

void GraphBuilder::AddEdge(uint32_t from, uint32_t to, EdgeKind kind, int64_t lag) {
  if (from != kNone && to != kNone) edges_.push_back({from, to, lag, kind});
}

void GraphBuilder::List(uint32_t from, uint32_t to, EdgeKind kind, int64_t lag) {
  const bool is_late = graph_.end(from) > graph_.start[to] + TimedGraph::kClockNs;
  if (is_late && kind != EdgeKind::kOtherWorkers) {
    ++graph_.violated[static_cast<size_t>(kind)];
    return;
  }
  graph_.from.push_back(from);
  graph_.lag.push_back(static_cast<uint32_t>(std::clamp<int64_t>(lag, 0, UINT32_MAX)));
  graph_.edge_kind.push_back(kind);
}

void GraphBuilder::PrepareEdges() {
  TakePages(graph_.from, &edge_pages_[0]);
  TakePages(graph_.lag, &edge_pages_[1]);
  TakePages(graph_.edge_kind, &edge_pages_[2]);
  TakePages(graph_.gap, &edge_pages_[3]);
  TakePages(graph_.first_edge, &edge_pages_[4]);
}

void GraphBuilder::ListEdges() {
  std::ranges::stable_sort(edges_, {}, &Edge::to);
  size_t most = edges_.size();
  for (const EdgeSeries& series : series_) most += series.size;
  graph_.from.reserve(most);
  graph_.lag.reserve(most);
  graph_.edge_kind.reserve(most);
  graph_.gap.reserve(graph_.size());
  graph_.first_edge.reserve(graph_.size() + 1);
  std::ranges::sort(series_, {}, [](const EdgeSeries& series) {
    return std::pair(series.kind == EdgeKind::kLaunch, series.to);
  });
  const auto launches = std::ranges::find(series_, EdgeKind::kLaunch, &EdgeSeries::kind);
  auto before = series_.begin(), after = launches;
  const auto list = [this](const EdgeSeries& series, uint32_t node) {
    const uint32_t i = node - series.to;
    const uint32_t from = !series.from.empty() ? series.from[i] : i == 0 ? kNone : node - 1;
    if (from != kNone) List(from, node, series.kind, series.lag.empty() ? 0 : series.lag[i]);
  };
  auto other = edges_.begin();
  for (uint32_t node = 0; node < graph_.size(); ++node) {
    if (node % kAtOnce == 0) PrepareEdges();
    const size_t first = graph_.from.size();
    graph_.first_edge.push_back(static_cast<uint32_t>(first));
    while (before != launches && node >= before->to + before->size) ++before;
    while (after != series_.end() && node >= after->to + after->size) ++after;
    if (before != launches && node >= before->to) list(*before, node);
    for (; other != edges_.end() && other->to == node; ++other) {
      List(other->from, node, other->kind, other->lag);
    }
    if (after != series_.end() && node >= after->to) list(*after, node);
    int64_t explained = INT64_MIN;
    for (size_t e = first; e < graph_.from.size(); ++e) {
      if (graph_.edge_kind[e] == EdgeKind::kOtherWorkers) continue;
      explained = std::max(explained, graph_.end(graph_.from[e]) + graph_.lag[e]);
    }
    graph_.gap.push_back(
        explained == INT64_MIN ? 0 : std::max<int64_t>(graph_.start[node] - explained, 0));
  }
  graph_.first_edge.push_back(static_cast<uint32_t>(graph_.from.size()));
  edges_ = {};
  series_ = {};
}

// Each node after what it waits for. Most of a node's have come already when it does, so that
// hardly anything is put aside; the arrays of Kahn's way, from nodes to those that wait for them,
// cost more than all of this.
void GraphBuilder::Order() {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(graph_.size(), kNew);
  struct Open {
    uint32_t node, edge;
  };
  std::vector<Open> open;
  graph_.order.reserve(graph_.size());
  for (uint32_t root = 0; root < graph_.size(); ++root) {
    if (state[root] != kNew) continue;
    open.push_back({root, graph_.first_edge[root]});
    state[root] = kOpen;
    while (!open.empty()) {
      if (graph_.order.size() % kAtOnce == 0) TakePages(graph_.order, &edge_pages_[0]);
      Open& last = open.back();
      const uint32_t end = graph_.first_edge[last.node + 1];
      while (last.edge < end && state[graph_.from[last.edge]] == kDone) ++last.edge;
      if (last.edge == end) {
        state[last.node] = kDone;
        graph_.order.push_back(last.node);
        open.pop_back();
        continue;
      }
      const uint32_t from = graph_.from[last.edge++];
      if (state[from] == kOpen) {
        graph_.has_cycle = true;
      } else {
        state[from] = kOpen;
        open.push_back({from, graph_.first_edge[from]});
      }
    }
  }
}

TimedGraph GraphBuilder::Seal() && {
  ListEdges();
  Order();
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
