// A graph launch: every node gets its place in time, after what it depends on.
#include <algorithm>
#include <unordered_map>

#include "tests/fakes/machine/announce.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/clock.h"
#include "tests/fakes/machine/device.h"
#include "tests/fakes/machine/graph.h"
#include "tests/fakes/machine/schedule.h"

namespace ranktap::standin {
namespace {

// Between a node and the one that waits for it.
constexpr uint64_t kNodeGapNs = 700;

struct LaunchState {
  const GraphExec& exec;
  Stream& stream;
  uint64_t queued_ns;
  std::vector<Operation> operations;
};

uint64_t PlaceBody(LaunchState& state, const Graph& body, uint64_t start_ns);

uint64_t PlaceNode(LaunchState& state, GraphNode& node, uint64_t start_ns) {
  if (!node.enabled) return start_ns;
  if (node.child != nullptr) return PlaceBody(state, *node.child, start_ns);
  switch (node.work.kind) {
    case WorkKind::kEventRecord:
      node.work.event->recorded = true;
      node.work.event->capture = nullptr;
      node.work.event->time_ns = start_ns;
      return start_ns;
    case WorkKind::kEventWait:
      return node.work.event->recorded ? std::max(start_ns, node.work.event->time_ns) : start_ns;
    case WorkKind::kEmpty:
    case WorkKind::kChildGraph:
      return start_ns;
    case WorkKind::kHostFunction:
    case WorkKind::kOperation:
      break;
  }
  Work work = node.work;
  work.operation.graph_id = state.exec.id;
  work.operation.graph_source_id = state.exec.source_id;
  work.operation.graph_was_traced = state.exec.traced;
  work.operation.graph_mark = state.exec.mark;
  work.operation.graph_node_id = node.id;
  work.operation.queued_ns = state.queued_ns;
  work.operation.submitted_ns = state.queued_ns + LaunchLatency() / 2;
  uint64_t end = Place(state.stream, start_ns, work);
  if (work.kind == WorkKind::kOperation) state.operations.push_back(work.operation);
  return end + kNodeGapNs;
}

uint64_t PlaceBody(LaunchState& state, const Graph& body, uint64_t start_ns) {
  std::unordered_map<const GraphNode*, uint64_t> ends;
  uint64_t last = start_ns;
  for (GraphNode* node : TopologicalOrder(body)) {
    uint64_t ready = start_ns;
    for (const GraphNode* dependency : node->dependencies) {
      ready = std::max(ready, ends.at(dependency));
    }
    ends[node] = PlaceNode(state, *node, ready);
    last = std::max(last, ends[node]);
  }
  return last;
}

}  // namespace

CUresult Launch(GraphExec* exec, Stream* stream) {
  std::unique_lock lock(MachineLock());
  if (stream->capture != nullptr) {
    Work work;
    work.kind = WorkKind::kChildGraph;
    work.child = exec->body;
    return CaptureWork(lock, stream, std::move(work));
  }
  uint64_t now = DeviceNow();
  uint64_t start = std::max(now + LaunchLatency(), ReadyAt(*stream));
  LaunchState state{*exec, *stream, now, {}};
  Work whole;
  whole.operation.kind = OperationKind::kGraph;
  whole.operation.graph_id = exec->id;
  whole.operation.graph_source_id = exec->source_id;
  whole.operation.graph_was_traced = exec->traced;
  whole.operation.queued_ns = now;
  whole.operation.submitted_ns = now + LaunchLatency() / 2;
  uint64_t end = PlaceBody(state, *exec->body, start);
  whole.duration_ns = end - start;
  stream->tail_ns = Place(*stream, start, whole);
  stream->outstanding.push_back(stream->tail_ns);
  lock.unlock();
  Announce(whole.operation);
  for (const Operation& operation : state.operations) Announce(operation);
  return CUDA_SUCCESS;
}

}  // namespace ranktap::standin
