#include "collector/export/graph/work_graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "collector/export/graph/graph_communication.h"
#include "collector/export/graph/graph_items.h"
#include "collector/export/graph/graph_phases.h"
#include "collector/export/graph/thread_order.h"
#include "collector/export/run_clock.h"
#include "collector/facts/device_order.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/tensor_arrows.h"

namespace ranktap::collector {
namespace {

constexpr uint32_t kNobody = ThreadOrder::kNobody;

class Builder {
 public:
  Builder(const Run& run, const Trace& trace, const GraphGroups& groups,
          const ExportOptions& options)
      : trace_(trace),
        spans_(DeviceTimeline(trace)),
        order_(trace),
        event_waits_(order_.EventWaits()),
        items_(ListGraphItems(run, trace, order_, options)),
        communication_(run, trace, groups),
        phases_(PhasesOfOperators(trace)),
        shift_(RealtimeOffset(run, trace) - FirstRealtime(run)),
        timed_(trace.origin != TraceOrigin::kExecution),
        node_of_op_(trace.operators.size(), kNobody),
        node_of_span_(spans_.size(), kNobody),
        work_of_op_(trace.operators.size()),
        node_of_call_(trace.api_calls.size(), kNobody) {
    for (const TensorArrow& arrow : TensorArrows(trace)) makers_[arrow.to].push_back(arrow.from);
  }

  WorkGraph Build() {
    for (const GraphItem& item : items_.list) {
      threads_.Settle(item.key);
      graph_.nodes.emplace_back();
      switch (item.kind) {
        case GraphItem::Kind::kThread:
          AddThread(item);
          break;
        case GraphItem::Kind::kOperator:
          AddOperator(item);
          break;
        case GraphItem::Kind::kCall:
        case GraphItem::Kind::kEventCall:
          AddCall(item);
          break;
        case GraphItem::Kind::kDevice:
          AddDevice(item);
          break;
        case GraphItem::Kind::kHostCollective:
          AddHostCollective(item);
          break;
      }
      Tidy(&Node());
    }
    AddFlops();
    return std::move(graph_);
  }

 private:
  using Thread = ThreadOrder::Thread;

  GraphNode& Node() { return graph_.nodes.back(); }
  uint32_t Index() const { return static_cast<uint32_t>(graph_.nodes.size() - 1); }
  void Depend(uint32_t on) {
    if (on != kNobody) Node().data.push_back(on);
  }
  static void Tidy(GraphNode* node) {
    std::ranges::sort(node->data);
    node->data.erase(std::ranges::unique(node->data).begin(), node->data.end());
  }

  // The node after the one before on its thread, and what it may have paused for.
  void Follow(const GraphItem& item) {
    Thread& thread = threads_.Of(item.writer);
    Depend(thread.last);
    const int64_t start = StartOf(item);
    const Thread* const awaited = timed_ ? threads_.AwaitedBy(item.writer, start) : nullptr;
    if (awaited != nullptr) PauseFor(*awaited, thread.idle_since, item);
    thread.last = Index();
    thread.idle_since = std::max(thread.idle_since, item.key);
    threads_.Open(item.writer, Index(), item.end);
  }
  // A range around it has waited for a communicator, or for the thread of the backward pass.
  void PauseFor(const Thread& other, int64_t idle_since, const GraphItem& item) {
    Depend(other.ended);
    const GraphNode& ended = graph_.nodes[other.ended];
    const bool communicates = !ended.collective.empty();
    if (item.around == kNone || node_of_op_[item.around] == kNobody) return;
    if (!communicates && ended.phase != "backward") return;
    const int64_t since = communicates ? std::max(idle_since, ended.start - shift_) : idle_since;
    int64_t& duration = graph_.nodes[node_of_op_[item.around]].duration;
    duration = std::max<int64_t>(duration - std::max<int64_t>(other.ended_at - since, 0), 0);
  }
  int64_t StartOf(const GraphItem& item) const {
    if (item.kind == GraphItem::Kind::kCall) return trace_.api_calls.start[item.row];
    if (item.kind == GraphItem::Kind::kEventCall) return trace_.event_calls.start[item.row];
    return item.key;
  }
  void SetTimes(const GraphItem& item, int64_t duration) {
    Node().start = std::max<int64_t>(item.key + shift_, 0);
    Node().duration = timed_ ? std::max<int64_t>(duration, 0) : 0;
  }
  void Around(const GraphItem& item) {
    const uint32_t parent = item.around == kNone ? kNobody : node_of_op_[item.around];
    const uint32_t by = parent != kNobody ? parent : threads_.Of(item.writer).root;
    if (by != kNobody) Node().control.push_back(by);
    if (item.around != kNone) Node().phase = phases_[item.around];
  }

  void AddThread(const GraphItem& item) {
    GraphNode& node = Node();
    node.name = "[pytorch|profiler|execution_trace|thread]";
    node.on_host = true;
    node.thread = ThreadOf(item.writer);
    Thread& thread = threads_.Of(item.writer);
    thread.root = thread.last = Index();
    thread.idle_since = INT64_MAX / 2;  // nothing waits before its first
    first_root_ = std::min(first_root_, Index());
  }
  int64_t ThreadOf(uint16_t writer) const {
    return writer < trace_.writers.size() ? trace_.writers[writer].thread : 0;
  }

  void AddOperator(const GraphItem& item) {
    GraphNode& node = Node();
    const Operators& ops = trace_.operators;
    node.name = trace_.dictionary.String(ops.name[item.row]);
    node.on_host = true;
    node.op = item.row;
    node.thread = ThreadOf(item.writer);
    SetTimes(item, items_.own_ns[item.row]);
    Around(item);
    node.phase = phases_[item.row];
    node.bytes = TensorBytes(trace_, ops.shapes.At(item.row), ops.types.At(item.row)) +
                 TensorBytes(trace_, ops.output_shapes.At(item.row), ops.output_types.At(item.row));
    Thread& thread = threads_.Of(item.writer);
    if (thread.last == thread.root) thread.idle_since = trace_.first_ns;
    Follow(item);
    for (const uint32_t maker : MakersOf(item.row)) Depend(node_of_op_[maker]);
    DependOnForward(item.row);
    node_of_op_[item.row] = Index();
    communication_.See(item.row, Index());
  }
  const std::vector<uint32_t>& MakersOf(uint32_t op) const {
    static const std::vector<uint32_t> kNoMakers;
    const auto found = makers_.find(op);
    return found == makers_.end() ? kNoMakers : found->second;
  }
  // A backward operator has the number of the forward one.
  void DependOnForward(uint32_t op) {
    constexpr uint8_t kBackward = 1;
    const uint64_t sequence = trace_.operators.sequence.At(op);
    if (sequence == 0) return;
    if (trace_.operators.scope.At(op) != kBackward) {
      forward_[sequence] = Index();
    } else if (const auto made = forward_.find(sequence); made != forward_.end()) {
      Depend(made->second);
    }
  }

  void AddCall(const GraphItem& item) {
    GraphNode& node = Node();
    const bool is_call = item.kind == GraphItem::Kind::kCall;
    const ApiCalls& calls = is_call ? trace_.api_calls : trace_.event_calls;
    node.name = trace_.dictionary.Api(calls.api[item.row]).name;
    node.on_host = true;
    node.thread = ThreadOf(item.writer);
    SetTimes(item, item.end - item.key);
    Around(item);
    Follow(item);
    if (item.awaited != kNone) Depend(node_of_span_[item.awaited]);
    // A launch outside of any operator is what its work hangs off.
    if (is_call && item.awaited == kNone) node_of_call_[item.row] = Index();
  }

  void AddDevice(const GraphItem& item) {
    GraphNode& node = Node();
    const DeviceSpan& span = spans_[item.row];
    node.name = NameOf(trace_, span);
    node.stream = StreamNumber(span.stream);
    SetTimes(item, item.end - spans_[item.row].start);
    node.op = item.around == kNone ? kNobody : item.around;
    Launched(item, span);
    DependOnWork(order_.Before(item.row));
    auto [wait, end] = std::ranges::equal_range(event_waits_, item.row, {},
                                                [](const auto& edge) { return edge.first; });
    for (; wait != end; ++wait) DependOnWork(wait->second);
    if (span.table == DeviceSpan::Table::kKernel && span.kind == WorkKind::kCommunication) {
      communication_.OfKernel(span.row, &node);
      FollowCommunicator();
    }
    SetBytes(span);
    node_of_span_[item.row] = Index();
  }
  // On it, or, where it was left out, on the last before it on its stream that was not.
  void DependOnWork(uint32_t work) {
    while (work != kNone && node_of_span_[work] == kNobody) work = order_.Before(work);
    if (work != kNone) Depend(node_of_span_[work]);
  }
  void Launched(const GraphItem& item, const DeviceSpan& span) {
    uint32_t by = item.around == kNone ? kNobody : node_of_op_[item.around];
    if (by == kNobody && span.launch != kNone) by = node_of_call_[span.launch];
    if (by == kNobody && span.launch != kNone) {
      by = threads_.LastOf(trace_.api_calls.writer[span.launch]);
    }
    if (by == kNobody) by = first_root_;
    if (by != kNobody) Node().control.push_back(by);
    Depend(by);
    if (item.around == kNone) return;
    Node().phase = phases_[item.around];
    for (uint32_t op = item.around; op != kNone; op = trace_.operators.parent[op]) {
      for (const uint32_t maker : MakersOf(op)) {
        if (!work_of_op_[maker].empty()) Depend(work_of_op_[maker].back());
      }
      work_of_op_[op].push_back(Index());
    }
  }
  void FollowCommunicator() {
    if (Node().collective.empty()) return;
    const auto [at, is_new] = communicators_.try_emplace(Node().group, Index());
    if (!is_new) Depend(std::exchange(at->second, Index()));
  }
  void SetBytes(const DeviceSpan& span) {
    GraphNode& node = Node();
    const Operators& ops = trace_.operators;
    if (span.table == DeviceSpan::Table::kCopy) node.bytes = trace_.copies.bytes[span.row];
    if (span.table == DeviceSpan::Table::kMemset) node.bytes = trace_.memsets.bytes[span.row];
    if (node.bytes == 0) node.bytes = static_cast<uint64_t>(node.message);
    if (node.bytes != 0 || node.op == kNobody) return;
    node.bytes = TensorBytes(trace_, ops.shapes.At(node.op), ops.types.At(node.op)) +
                 TensorBytes(trace_, ops.output_shapes.At(node.op), ops.output_types.At(node.op));
  }

  void AddHostCollective(const GraphItem& item) {
    const HostCollective& comm = items_.collectives[item.row];
    GraphNode& node = Node();
    node.name = comm.op != kNone ? trace_.dictionary.String(trace_.operators.name[comm.op])
                                 : "gloo:" + comm.type;
    SetTimes(item, item.end - item.key);
    const uint32_t asked = communication_.OfHost(comm, &node);
    node.bytes = static_cast<uint64_t>(node.message);
    const uint32_t by = asked != kNobody ? asked : first_root_;
    if (by != kNobody) node.control.push_back(by);
    Depend(by);
    FollowCommunicator();
    if (comm.op != kNone) {
      node.op = comm.op;
      node_of_op_[comm.op] = Index();
      for (const uint32_t maker : MakersOf(comm.op)) Depend(node_of_op_[maker]);
    }
    // Work that is only replayed runs on the host.
    node.on_host = node.kind == GraphNode::Kind::kCompute;
    if (asked != kNobody) node.phase = graph_.nodes[asked].phase;
    threads_.Open(ThreadOrder::kCommunicator, Index(), item.end);
  }

  // An operator's arithmetic is its longest kernel's, or its own where it has none.
  void AddFlops() {
    const std::vector<FlopCount> counts = CountFlops(trace_, FlopRule::kCounter);
    for (uint32_t op = 0; op < counts.size(); ++op) {
      if (counts[op].flops == 0) continue;
      uint32_t longest = node_of_op_[op];
      bool on_device = false;
      for (const uint32_t work : work_of_op_[op]) {
        const GraphNode& node = graph_.nodes[work];
        if (node.kind != GraphNode::Kind::kCompute) continue;
        if (on_device && node.duration <= graph_.nodes[longest].duration) continue;
        longest = work;
        on_device = true;
      }
      if (longest != kNobody) graph_.nodes[longest].flops += counts[op].flops;
    }
  }

  const Trace& trace_;
  const std::vector<DeviceSpan>& spans_;
  DeviceOrder order_;
  std::vector<std::pair<uint32_t, uint32_t>> event_waits_;
  GraphItems items_;
  GraphCommunication communication_;
  std::vector<std::string_view> phases_;
  int64_t shift_;
  bool timed_;
  WorkGraph graph_;
  uint32_t first_root_ = kNobody;
  std::vector<uint32_t> node_of_op_, node_of_span_;
  std::vector<std::vector<uint32_t>> work_of_op_;  // nodes of devices, inside operators too
  std::vector<uint32_t> node_of_call_;
  ThreadOrder threads_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> makers_;  // by operator: operators
  std::unordered_map<uint64_t, uint32_t> forward_;              // by sequence number
  std::map<std::string, uint32_t> communicators_;               // the last of each
};

}  // namespace

WorkGraph BuildWorkGraph(const Run& run, const Trace& trace, const GraphGroups& groups,
                         const ExportOptions& options) {
  return Builder(run, trace, groups, options).Build();
}

}  // namespace ranktap::collector
