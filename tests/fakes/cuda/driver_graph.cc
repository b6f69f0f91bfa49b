// Graphs: built by hand, instantiated, launched.
#include <algorithm>
#include <vector>

#include "driver_api.gen.h"
#include "tests/fakes/cuda/graph_nodes.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/graph.h"

using namespace ranktap::standin;

namespace {

CUresult InstantiateAs(CUgraphExec* handle, CUgraph graph_handle, unsigned long long flags) {
  Graph* graph = AsGraph(graph_handle);
  Context* context = CurrentThread().current();
  if (graph == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  GraphExec* exec = Instantiate(graph, context, flags);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = Handle(exec);
  return CUDA_SUCCESS;
}

// Fills `out` with at most `*count` nodes and tells how many there are, CUDA's two-call way.
CUresult List(const std::vector<GraphNode*>& nodes, CUgraphNode* out, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = nodes.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? Handle(nodes[i]) : nullptr;
  *count = std::min(*count, nodes.size());
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuGraphCreate(CUgraph* graph, unsigned int flags) {
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *graph = Handle(CreateGraph());
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroy(CUgraph handle) {
  Graph* graph = AsGraph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DestroyGraph(graph);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphClone(CUgraph* clone, CUgraph original) {
  Graph* graph = AsGraph(original);
  if (graph == nullptr || clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *clone = Handle(CloneGraph(graph, true));
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  Graph* graph = AsGraph(clone);
  GraphNode* wanted = AsNode(original);
  if (graph == nullptr || wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* found = FindClone(graph, wanted);
  *node = Handle(found);
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from,
                                       const CUgraphNode* to, const CUgraphEdgeData*,
                                       size_t count) {
  if (AsGraph(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* first = AsNode(from[i]);
    GraphNode* then = AsNode(to[i]);
    if (first == nullptr || then == nullptr) return CUDA_ERROR_INVALID_VALUE;
    AddDependency(first, then);
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroyNode(CUgraphNode handle) {
  GraphNode* node = AsNode(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DestroyNode(node);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  Graph* graph = AsGraph(handle);
  return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : List(graph->nodes, nodes, count);
}

CUresult sim_cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  Graph* graph = AsGraph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> roots;
  for (GraphNode* node : graph->nodes) {
    if (node->dependencies.empty()) roots.push_back(node);
  }
  return List(roots, nodes, count);
}

CUresult sim_cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                                CUgraphEdgeData*, size_t* count) {
  Graph* graph = AsGraph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> first, then;
  for (GraphNode* node : graph->nodes) {
    for (GraphNode* dependency : node->dependencies) {
      first.push_back(dependency);
      then.push_back(node);
    }
  }
  size_t room = count == nullptr ? 0 : *count;
  List(then, to, &room);
  return List(first, from, count);
}

CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData*,
                                           size_t* count) {
  GraphNode* node = AsNode(handle);
  return node == nullptr ? CUDA_ERROR_INVALID_VALUE : List(node->dependencies, nodes, count);
}

CUresult sim_cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  GraphNode* node = AsNode(handle);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                         unsigned long long flags) {
  return InstantiateAs(exec, graph, flags);
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = InstantiateAs(exec, graph, params->flags);
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult sim_cuGraphExecDestroy(CUgraphExec handle) {
  GraphExec* exec = AsExec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DestroyExec(exec);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  GraphExec* exec = AsExec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphUpload(CUgraphExec handle, CUstream) {
  return AsExec(handle) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  GraphExec* exec = AsExec(handle);
  Stream* stream = AsStream(stream_handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : Launch(exec, stream);
}

// The same nodes in the same order, or nothing changes.
CUresult sim_cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                                  CUgraphExecUpdateResultInfo* info) {
  GraphExec* exec = AsExec(handle);
  Graph* graph = AsGraph(graph_handle);
  if (exec == nullptr || graph == nullptr || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *info = {};
  const std::vector<GraphNode*>& now = exec->body->nodes;
  bool same = now.size() == graph->nodes.size();
  for (size_t i = 0; same && i < now.size(); ++i) same = now[i]->type == graph->nodes[i]->type;
  if (!same) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  for (size_t i = 0; i < now.size(); ++i) {
    now[i]->work = graph->nodes[i]->work;
    now[i]->original = graph->nodes[i];
  }
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node_handle,
                                   unsigned int enabled) {
  GraphNode* node = NodeOfExec(handle, node_handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node_handle,
                                   unsigned int* enabled) {
  GraphNode* node = NodeOfExec(handle, node_handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = node->enabled;
  return CUDA_SUCCESS;
}

}  // extern "C"
