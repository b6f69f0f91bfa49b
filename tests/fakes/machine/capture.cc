// Stream capture: work given to a capturing stream becomes nodes of a graph, and events carry the
// capture over to other streams.
#include <algorithm>
#include <atomic>
#include <set>

#include "tests/fakes/machine/graph.h"
#include "tests/fakes/machine/schedule.h"

namespace ranktap::standin {
namespace {

CUgraphNodeType NodeType(const Work& work) {
  switch (work.kind) {
    case WorkKind::kHostFunction:
      return CU_GRAPH_NODE_TYPE_HOST;
    case WorkKind::kEventRecord:
      return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case WorkKind::kEventWait:
      return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case WorkKind::kChildGraph:
      return CU_GRAPH_NODE_TYPE_GRAPH;
    case WorkKind::kEmpty:
      return CU_GRAPH_NODE_TYPE_EMPTY;
    case WorkKind::kOperation:
      break;
  }
  switch (work.operation.kind) {
    case OperationKind::kKernel:
      return CU_GRAPH_NODE_TYPE_KERNEL;
    case OperationKind::kCopy:
      return CU_GRAPH_NODE_TYPE_MEMCPY;
    case OperationKind::kMemset:
      return CU_GRAPH_NODE_TYPE_MEMSET;
    case OperationKind::kGraph:
      return CU_GRAPH_NODE_TYPE_GRAPH;
  }
  return CU_GRAPH_NODE_TYPE_EMPTY;
}

void CollectAncestors(GraphNode* node, std::set<GraphNode*>* seen) {
  if (!seen->insert(node).second) return;
  for (GraphNode* dependency : node->dependencies) CollectAncestors(dependency, seen);
}

// Every stream that joined must have come back to the origin.
bool AllJoined(const Capture& capture) {
  std::set<GraphNode*> reached;
  for (GraphNode* node : capture.origin->capture_tail) CollectAncestors(node, &reached);
  for (const Stream* stream : capture.members) {
    for (GraphNode* node : stream->capture_tail) {
      if (!reached.contains(node)) return false;
    }
  }
  return true;
}

}  // namespace

CUresult BeginCapture(Stream* stream, CUstreamCaptureMode mode, Graph* into) {
  static std::atomic<uint64_t> next_id{0};
  {
    std::lock_guard lock(MachineLock());
    if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->is_legacy()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  Capture* capture = new Capture;
  capture->graph = into == nullptr ? CreateGraph() : into;
  capture->graph_is_ours = into == nullptr;
  capture->origin = stream;
  capture->mode = mode;
  capture->id = ++next_id;
  capture->members.push_back(stream);
  std::lock_guard lock(MachineLock());
  stream->capture = capture;
  stream->capture_tail.clear();
  return CUDA_SUCCESS;
}

CUresult EndCapture(Stream* stream, Graph** graph) {
  std::lock_guard lock(MachineLock());
  *graph = nullptr;
  Capture* capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  CUresult result = CUDA_SUCCESS;
  if (capture->invalidated) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!AllJoined(*capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  } else {
    *graph = capture->graph;
  }
  for (Stream* member : capture->members) {
    member->capture = nullptr;
    member->capture_tail.clear();
  }
  return result;
}

CUresult CaptureWork(std::unique_lock<std::mutex>& lock, Stream* stream, Work work) {
  Capture* capture = stream->capture;
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode*> dependencies = stream->capture_tail;
  lock.unlock();
  CUgraphNodeType type = NodeType(work);
  GraphNode* node = AddNode(capture->graph, type, std::move(work), dependencies);
  node->child = node->work.child;
  lock.lock();
  stream->capture_tail = {node};
  return CUDA_SUCCESS;
}

CUresult CaptureEventRecord(Stream* stream, Event* event) {
  if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->capture = stream->capture;
  event->capture_tail = stream->capture_tail;
  event->recorded = false;
  return CUDA_SUCCESS;
}

CUresult CaptureEventWait(Stream* stream, Event* event) {
  Capture* capture = event->capture;
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture != nullptr && stream->capture != capture) {
    capture->invalidated = stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (stream->capture == nullptr) {
    if (stream->is_legacy()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    stream->capture = capture;
    stream->capture_tail.clear();
    capture->members.push_back(stream);
  }
  for (GraphNode* node : event->capture_tail) {
    auto& tail = stream->capture_tail;
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  return CUDA_SUCCESS;
}

}  // namespace ranktap::standin
