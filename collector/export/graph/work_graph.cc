#include "collector/export/graph/work_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "collector/export/graph/graph_communication.h"
#include "collector/export/graph/graph_phases.h"
#include "collector/export/graph/host_collectives.h"
#include "collector/export/graph/thread_order.h"
#include "collector/export/run_clock.h"
#include "collector/facts/device_order.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/operator_around.h"
#include "collector/facts/framework/tensor_arrows.h"
#include "collector/facts/operators/op_tensors.h"

namespace ranktap::collector {
namespace {

constexpr uint32_t kNobody = ThreadOrder::kNobody;

// What becomes a node.
struct Item {
  enum class Kind : uint8_t { kOperator, kCall, kEventCall, kDevice, kHostCollective };
  int64_t start = 0, end = 0;
  // The end of the work that a call waited for, or the start of the operator that launched work.
  int64_t not_before = INT64_MIN;
  Kind kind{};
  uint32_t row = 0;          // of its table; kDevice: of DeviceTimeline(); else of the collectives
  uint16_t writer = 0;       // of what is on a host thread
  uint32_t around = kNone;   // row of the operator around it, or that launched work
  uint32_t awaited = kNone;  // of a call: index into DeviceTimeline()
  int64_t begin() const { return std::max(start, not_before); }
  bool on_thread() const { return kind < Kind::kDevice; }
};

// What others depend on of an operator.
struct OperatorNodes {
  uint32_t node = kNobody;
  std::vector<uint32_t> makers;  // operators, of the tensors that it takes
  std::vector<uint32_t> work;    // nodes of devices, of operators inside it too
};

class Builder {
 public:
  Builder(const Run& run, const Trace& trace, const GraphGroups& groups,
          const ExportOptions& options)
      : trace_(trace),
        options_(options),
        collectives_(FindHostCollectives(run, trace, options)),
        communication_(run, trace, groups),
        shift_(RealtimeOffset(run, trace) - FirstRealtime(run)) {
    for (const TensorArrow& arrow : TensorArrows(trace)) {
      of_op_[arrow.to].makers.push_back(arrow.from);
    }
  }

  WorkGraph Build() {
    ListOperators();
    ListCalls(ListDevice());
    ListHostCollectives();
    // Each depends on earlier ones only.
    std::ranges::sort(
        items_, {}, [](const Item& item) { return std::tuple(item.begin(), item.kind, item.row); });
    AddThreads();
    for (const Item& item : items_) {
      threads_.Settle(item.begin());
      graph_.nodes.emplace_back().start = std::max<int64_t>(item.begin() + shift_, 0);
      if (item.around != kNone) Node().phase = phases_[item.around];
      if (item.kind == Item::Kind::kOperator) {
        AddOperator(item);
      } else if (item.kind == Item::Kind::kDevice) {
        AddDevice(item);
      } else if (item.kind == Item::Kind::kHostCollective) {
        AddHostCollective(item);
      } else {
        AddCall(item);
      }
      std::vector<uint32_t>& data = Node().data;
      std::ranges::sort(data);
      data.erase(std::ranges::unique(data).begin(), data.end());
    }
    AddFlops();
    return std::move(graph_);
  }

 private:
  using Kind = Item::Kind;
  using Thread = ThreadOrder::Thread;

  bool List(const Item& item) {
    const bool is_kept = options_.Keeps(item.start, item.end);
    if (is_kept) items_.push_back(item);
    return is_kept;
  }
  void ListOperators() {
    for (uint32_t op = 0; op < ops_.size(); ++op) {
      if (collectives_.are_operators[op]) continue;
      List({.start = ops_.start[op],
            .end = ops_.end[op],
            .kind = Kind::kOperator,
            .row = op,
            .writer = ops_.writer[op],
            .around = ops_.parent[op]});
    }
  }
  // Behind its launch, whatever the clocks say. By row of api_calls: it launched work outside of
  // any operator.
  std::vector<bool> ListDevice() {
    std::vector<bool> launches(trace_.api_calls.size());
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const uint32_t op = LaunchingOperator(trace_, spans_[i]);
      if (op == kNone && spans_[i].launch != kNone) launches[spans_[i].launch] = true;
      List({.start = spans_[i].start,
            .end = spans_[i].end,
            .not_before = op == kNone ? INT64_MIN : ops_.start[op],
            .kind = Kind::kDevice,
            .row = i,
            .around = op});
    }
    return launches;
  }
  // Those that wait for a device, and those of `launches`.
  void ListCalls(std::vector<bool> launches) {
    const OperatorAround around(trace_);
    for (const DeviceReturn& back : order_.returns()) {
      if (back.only_asks) continue;
      ListCall(back, around);
      if (!back.is_event_call) launches[back.row] = false;
    }
    const ApiCalls& calls = trace_.api_calls;
    for (uint32_t i = 0; i < launches.size(); ++i) {
      if (!launches[i]) continue;
      ListCall(
          {.called = calls.start[i], .returned = calls.end[i], .row = i, .writer = calls.writer[i]},
          around);
    }
  }
  void ListCall(const DeviceReturn& call, const OperatorAround& around) {
    const uint32_t op = around.InnermostAt(call.writer, call.called);
    const bool is_kept =
        List({.start = call.called,
              .end = call.returned,
              .not_before = call.latest == kNone ? INT64_MIN : spans_[call.latest].end,
              .kind = call.is_event_call ? Kind::kEventCall : Kind::kCall,
              .row = call.row,
              .writer = call.writer,
              .around = op,
              .awaited = call.latest});
    if (is_kept && op != kNone) own_ns_[op] -= TimeIn(ops_, op, call.called, call.returned);
  }
  void ListHostCollectives() {
    for (uint32_t i = 0; i < collectives_.list.size(); ++i) {
      const HostCollective& comm = collectives_.list[i];
      items_.push_back(
          {.start = comm.start, .end = comm.end, .kind = Kind::kHostCollective, .row = i});
    }
  }

  WorkNode& Node() { return graph_.nodes.back(); }
  uint32_t Index() const { return static_cast<uint32_t>(graph_.nodes.size() - 1); }
  void Depend(uint32_t on) {
    if (on != kNobody) Node().data.push_back(on);
  }
  uint32_t NodeOf(uint32_t op) const { return op == kNone ? kNobody : of_op_[op].node; }
  void SetDuration(int64_t ns) { Node().duration = timed_ ? std::max<int64_t>(ns, 0) : 0; }
  void SetThread(uint16_t writer) {
    Node().on_host = true;
    if (writer < trace_.writers.size()) Node().thread = trace_.writers[writer].thread;
  }

  void AddThreads() {
    std::set<uint16_t> writers;
    for (const Item& item : items_) {
      if (item.on_thread()) writers.insert(item.writer);
    }
    if (writers.empty()) writers.insert(0);
    for (const uint16_t writer : writers) {
      graph_.nodes.emplace_back().name = "[pytorch|profiler|execution_trace|thread]";
      SetThread(writer);
      Thread& thread = threads_.Of(writer);
      thread.root = thread.last = Index();
      thread.idle_since = INT64_MAX / 2;  // nothing waits before its first
    }
  }

  // After the node before it on its thread, and after what that may have paused for.
  void Follow(const Item& item) {
    SetThread(item.writer);
    Thread& thread = threads_.Of(item.writer);
    const uint32_t around = NodeOf(item.around);
    Node().control.push_back(around == kNobody ? thread.root : around);
    Depend(thread.last);
    const Thread* const awaited = timed_ ? threads_.AwaitedBy(item.writer, item.start) : nullptr;
    if (awaited != nullptr) PauseFor(*awaited, thread.idle_since, around);
    thread.last = Index();
    thread.idle_since = std::max(thread.idle_since, item.begin());
    threads_.Open(item.writer, Index(), item.end);
  }
  // A range around it has waited for a communicator, or for the thread of the backward pass.
  void PauseFor(const Thread& other, int64_t idle_since, uint32_t around) {
    Depend(other.ended);
    const WorkNode& ended = graph_.nodes[other.ended];
    const bool communicates = !ended.collective.empty();
    if (around == kNobody || (!communicates && ended.phase != "backward")) return;
    const int64_t since = communicates ? std::max(idle_since, ended.start - shift_) : idle_since;
    int64_t& duration = graph_.nodes[around].duration;
    duration = std::max<int64_t>(duration - std::max<int64_t>(other.ended_at - since, 0), 0);
  }

  void AddOperator(const Item& item) {
    WorkNode& node = Node();
    node.name = trace_.dictionary.String(ops_.name[item.row]);
    SetDuration(own_ns_[item.row]);
    node.op = item.row;
    node.phase = phases_[item.row];
    node.bytes = TensorsOf(item.row);
    Thread& thread = threads_.Of(item.writer);
    if (thread.last == thread.root) thread.idle_since = trace_.first_ns;
    Follow(item);
    for (const uint32_t maker : of_op_[item.row].makers) Depend(of_op_[maker].node);
    DependOnForward(item.row);
    of_op_[item.row].node = Index();
    communication_.See(item.row, Index());
  }
  uint64_t TensorsOf(uint32_t op) const {
    return static_cast<uint64_t>(
        TensorBytes(trace_, ops_.shapes.At(op), ops_.types.At(op)) +
        TensorBytes(trace_, ops_.output_shapes.At(op), ops_.output_types.At(op)));
  }
  // A backward operator has the number of the forward one.
  void DependOnForward(uint32_t op) {
    constexpr uint8_t kBackward = 1;
    const uint64_t sequence = ops_.sequence.At(op);
    if (sequence == 0) return;
    if (ops_.scope.At(op) != kBackward) {
      forward_[sequence] = Index();
    } else if (const auto made = forward_.find(sequence); made != forward_.end()) {
      Depend(made->second);
    }
  }

  void AddCall(const Item& item) {
    const bool is_call = item.kind == Kind::kCall;
    const ApiCalls& calls = is_call ? trace_.api_calls : trace_.event_calls;
    Node().name = trace_.dictionary.Api(calls.api[item.row]).name;
    SetDuration(item.end - item.begin());
    Follow(item);
    if (item.awaited != kNone) Depend(node_of_span_[item.awaited]);
    // A launch outside of any operator is what its work hangs off.
    if (is_call && item.awaited == kNone) node_of_call_[item.row] = Index();
  }

  void AddDevice(const Item& item) {
    WorkNode& node = Node();
    const DeviceSpan& span = spans_[item.row];
    node.name = NameOf(trace_, span);
    SetDuration(span.end - span.start);
    node.stream = StreamNumber(span.stream);
    node.op = item.around;
    node.bytes = BytesMoved(trace_, span);
    Launched(item.around, span.launch);
    DependOnWork(order_.Before(item.row));
    auto [wait, end] = std::ranges::equal_range(event_waits_, item.row, {},
                                                [](const auto& edge) { return edge.first; });
    for (; wait != end; ++wait) DependOnWork(wait->second);
    if (span.table == DeviceSpan::Table::kKernel && span.kind == WorkKind::kCommunication) {
      communication_.OfWork(item.row, &node);
      FollowCommunicator();
    }
    if (node.bytes == 0) node.bytes = static_cast<uint64_t>(node.message);
    if (node.bytes == 0 && node.op != kNone) node.bytes = TensorsOf(node.op);
    node_of_span_[item.row] = Index();
  }
  // On it, or, where it was left out, on the last before it on its stream that was not.
  void DependOnWork(uint32_t work) {
    while (work != kNone && node_of_span_[work] == kNobody) work = order_.Before(work);
    if (work != kNone) Depend(node_of_span_[work]);
  }
  void Launched(uint32_t op, uint32_t launch) {
    uint32_t by = NodeOf(op);
    if (by == kNobody && launch != kNone) by = node_of_call_[launch];
    if (by == kNobody && launch != kNone) by = threads_.LastOf(trace_.api_calls.writer[launch]);
    AskedBy(by);
    for (; op != kNone; op = ops_.parent[op]) {
      for (const uint32_t maker : of_op_[op].makers) {
        if (!of_op_[maker].work.empty()) Depend(of_op_[maker].work.back());
      }
      of_op_[op].work.push_back(Index());
    }
  }
  // kNobody: by the first thread.
  void AskedBy(uint32_t by) {
    if (by == kNobody) by = 0;
    Node().control.push_back(by);
    Depend(by);
  }
  void FollowCommunicator() {
    if (Node().collective.empty()) return;
    const auto [at, is_new] = communicators_.try_emplace(Node().group, Index());
    if (!is_new) Depend(std::exchange(at->second, Index()));
  }

  void AddHostCollective(const Item& item) {
    const HostCollective& comm = collectives_.list[item.row];
    WorkNode& node = Node();
    SetDuration(item.end - item.start);
    node.name =
        comm.op != kNone ? trace_.dictionary.String(ops_.name[comm.op]) : "gloo:" + comm.type;
    const uint32_t asked = communication_.OfHost(comm, &node);
    node.bytes = static_cast<uint64_t>(node.message);
    AskedBy(asked);
    FollowCommunicator();
    if (comm.op != kNone) {
      node.op = comm.op;
      of_op_[comm.op].node = Index();
      for (const uint32_t maker : of_op_[comm.op].makers) Depend(of_op_[maker].node);
    }
    // Work that is only replayed runs on the host.
    node.on_host = node.kind == WorkNode::Kind::kCompute;
    if (asked != kNobody) node.phase = graph_.nodes[asked].phase;
    threads_.Open(ThreadOrder::kCommunicator, Index(), item.end);
  }

  // An operator's arithmetic is its longest kernel's, or its own where it has none.
  void AddFlops() {
    const std::vector<FlopCount> counts = CountFlops(trace_, FlopRule::kCounter);
    for (uint32_t op = 0; op < counts.size(); ++op) {
      if (counts[op].flops == 0) continue;
      uint32_t longest = kNobody;
      for (const uint32_t work : of_op_[op].work) {
        const WorkNode& node = graph_.nodes[work];
        if (node.kind != WorkNode::Kind::kCompute) continue;
        if (longest == kNobody || node.duration > graph_.nodes[longest].duration) longest = work;
      }
      if (longest == kNobody) longest = of_op_[op].node;
      if (longest != kNobody) graph_.nodes[longest].flops += counts[op].flops;
    }
  }

  const Trace& trace_;
  const ExportOptions& options_;
  const Operators& ops_ = trace_.operators;
  const DeviceSpans& spans_ = DeviceTimeline(trace_);
  const DeviceOrder order_{trace_};
  const std::vector<std::pair<uint32_t, uint32_t>> event_waits_ = order_.EventWaits();
  const HostCollectives collectives_;
  GraphCommunication communication_;
  const std::vector<std::string_view> phases_ = PhasesOfOperators(trace_);
  // By operator, without calls that are nodes.
  std::vector<int64_t> own_ns_ = OwnTimes(ops_, [](uint32_t) { return true; });
  const int64_t shift_;
  const bool timed_ = trace_.origin != TraceOrigin::kExecution;
  std::vector<Item> items_;
  WorkGraph graph_;
  std::vector<OperatorNodes> of_op_ = std::vector<OperatorNodes>(ops_.size());
  std::vector<uint32_t> node_of_span_ = std::vector<uint32_t>(spans_.size(), kNobody);
  std::vector<uint32_t> node_of_call_ = std::vector<uint32_t>(trace_.api_calls.size(), kNobody);
  ThreadOrder threads_;
  std::unordered_map<uint64_t, uint32_t> forward_;  // by sequence number
  std::map<std::string, uint32_t> communicators_;   // the last of each
};

}  // namespace

WorkGraph BuildWorkGraph(const Run& run, const Trace& trace, const GraphGroups& groups,
                         const ExportOptions& options) {
  return Builder(run, trace, groups, options).Build();
}

}  // namespace ranktap::collector
