// What waited for what, over all ranks, in flat arrays, and the same work run again with other
// durations. A node takes `own` and begins when its last edge lets it, and `gap` after that:
//
//   host    launch 0..2      sync .....18 (returns)     edges of the return: thread from 2, and
//   stream         gemm 5..17                           gemm's end with a lag of 1
//
// With gemm at half its time (6) the return is at 5 + 6 + 1 = 12.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/trace/operators.h"
#include "collector/trace/pages_ahead.h"

namespace ranktap::collector {

enum class NodeKind : uint8_t {
  kHost,      // a thread ran; or, taking no time, it returned from a wait
  kWork,      // of a device; of a collective the part before all ranks are there, taking no time
  kTransfer,  // the rest of a collective
  kMeeting,   // the last rank has come; takes no time
  kBatch,     // a loader's workers make a batch
};

enum class EdgeKind : uint8_t {
  kThread,        // a thread does one thing after the other
  kStream,        // so does a stream
  kLaunch,        // work runs after its launch
  kEvent,         // a stream waits for what was recorded on another
  kReturn,        // a call returns when a device has come to some point
  kQueue,         // a launch returns when the stream's queue has room
  kMeeting,       // a collective moves data when the last rank has come
  kMessage,       // a receive ends after the send began
  kHandOver,      // between the threads of the forward and the backward pass; inferred
  kLoader,        // a batch is there
  kOtherWorkers,  // the same with another number of workers; nothing waits for it as it is
};
inline constexpr size_t kEdgeKinds = 11;
std::string_view NameOf(EdgeKind kind);

struct TimedGraph {
  // By node.
  std::vector<int64_t> start, own;
  std::vector<int64_t> gap;  // what no edge explains of its start; kept
  std::vector<uint32_t> trace;
  std::vector<uint32_t> row;  // kHost: the writer; kWork: of DeviceTimeline(); else kNone
  std::vector<NodeKind> kind;
  std::vector<uint32_t> order;  // each after those that it waits for
  // Edges to node n are first_edge[n] to first_edge[n + 1].
  std::vector<uint32_t> first_edge, from;
  std::vector<uint32_t> lag;  // ns; what is more than 4.29 s of it is a gap
  std::vector<EdgeKind> edge_kind;
  // Edges that the trace contradicts by more than kClockNs: `to` began before `from` ended. They
  // are not among the edges.
  std::array<size_t, kEdgeKinds> violated{};
  bool has_cycle = false;

  static constexpr int64_t kClockNs = 1'000;
  size_t size() const { return start.size(); }
  int64_t end(uint32_t node) const { return start[node] + own[node]; }
};

// An edge to each of the nodes from `to` on, in flat arrays: threads, streams and launches have
// millions.
struct EdgeSeries {
  uint32_t to = 0, size = 0;
  EdgeKind kind{};
  std::vector<uint32_t> from;  // kNone: this node has none. Empty: the node before it
  std::vector<uint32_t> lag;   // empty: none
};

class GraphBuilder {
 public:
  // Room for so many, so that nothing is copied as they come.
  void Reserve(size_t nodes);
  uint32_t AddNode(NodeKind kind, uint32_t trace, uint32_t row, int64_t start, int64_t own) {
    if (size() % kAtOnce == 0) PrepareNodes();
    graph_.start.push_back(start);
    graph_.own.push_back(own < 0 ? 0 : own);
    graph_.trace.push_back(trace);
    graph_.row.push_back(row);
    graph_.kind.push_back(kind);
    return static_cast<uint32_t>(size() - 1);
  }
  // `to` begins `lag` after `from` ended, at the earliest.
  void AddEdge(uint32_t from, uint32_t to, EdgeKind kind, int64_t lag = 0);
  // The same for many nodes. Two series of one kind have no node in common.
  void AddSeries(EdgeSeries series) { series_.push_back(std::move(series)); }
  // When the last edge so far lets it begin, by the times of the trace.
  int64_t end(uint32_t node) const { return graph_.end(node); }
  int64_t start(uint32_t node) const { return graph_.start[node]; }
  size_t size() const { return graph_.size(); }
  TimedGraph Seal() &&;

 private:
  struct Edge {
    uint32_t from, to;
    int64_t lag;
    EdgeKind kind;
  };
  // The edges of a node in their order: of its thread or stream, others as they came, its launch.
  void ListEdges();
  // So that the kernel gives pages for the next ones at once.
  static constexpr size_t kAtOnce = 2048;
  void PrepareNodes();
  void PrepareEdges();
  void List(uint32_t from, uint32_t to, EdgeKind kind, int64_t lag);
  void Order();

  TimedGraph graph_;
  std::vector<Edge> edges_;
  std::vector<EdgeSeries> series_;
  std::array<PagesAhead, 5> node_pages_, edge_pages_;
};

// An edit of a graph: what each node takes, and edges that nothing waits for any more.
struct GraphEdit {
  explicit GraphEdit(const TimedGraph& graph);
  std::vector<double> share;  // of `own`, by node
  std::vector<bool> without;  // by edge
};

struct Replayed {
  std::vector<int64_t> begin, end;  // by node
  std::vector<uint32_t> last_edge;  // that let it begin; kNone: none did
};

// One pass over nodes and edges. The graph has no cycle.
Replayed Replay(const TimedGraph& graph, const GraphEdit& edit);

}  // namespace ranktap::collector
