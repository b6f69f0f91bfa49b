// The nodes of a graph and their parameters.
#include <vector>

#include "driver_api.gen.h"
#include "tests/fakes/cuda/graph_nodes.h"
#include "tests/fakes/machine/function.h"
#include "tests/fakes/machine/make_work.h"

using namespace ranktap::standin;

namespace ranktap::standin {

GraphNode* NodeOfExec(CUgraphExec handle, CUgraphNode node_handle) {
  GraphExec* exec = AsExec(handle);
  GraphNode* original = AsNode(node_handle);
  return exec == nullptr || original == nullptr ? nullptr : FindClone(exec->body, original);
}

}  // namespace ranktap::standin

namespace {

// Null when the graph or a dependency is not ours.
GraphNode* Add(CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependencies,
               size_t count, CUgraphNodeType type, Work work) {
  Graph* graph = AsGraph(graph_handle);
  if (graph == nullptr || handle == nullptr) return nullptr;
  std::vector<GraphNode*> first;
  for (size_t i = 0; i < count; ++i) {
    first.push_back(AsNode(dependencies[i]));
    if (first.back() == nullptr) return nullptr;
  }
  GraphNode* node = AddNode(graph, type, std::move(work), first);
  *handle = Handle(node);
  return node;
}

bool KernelNodeWork(const CUDA_KERNEL_NODE_PARAMS& params, Work* work) {
  const void* handle = params.func != nullptr ? static_cast<const void*>(params.func) : params.kern;
  const Function* function = AsFunction(handle);
  if (function == nullptr) return false;
  KernelShape shape{.name = function->name,
                    .grid = {params.gridDimX, params.gridDimY, params.gridDimZ},
                    .block = {params.blockDimX, params.blockDimY, params.blockDimZ}};
  shape.dynamic_shared = params.sharedMemBytes;
  shape.static_shared = function->static_shared;
  shape.registers = function->registers;
  shape.local_per_thread = function->local_per_thread;
  if (!ValidShape(*function, shape)) return false;
  *work = KernelWork(shape);
  return true;
}

CUresult ChangeKernel(GraphNode* node, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!KernelNodeWork(*params, &node->work)) return CUDA_ERROR_INVALID_VALUE;
  node->kernel_params = *params;
  return CUDA_SUCCESS;
}

CUresult ChangeCopy(GraphNode* node, const CUDA_MEMCPY3D* params) {
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!BoxCopyWork(*params, true, &node->work)) return CUDA_ERROR_NOT_SUPPORTED;
  node->copy_params = *params;
  return CUDA_SUCCESS;
}

CUresult ChangeMemset(GraphNode* node, const CUDA_MEMSET_NODE_PARAMS* params) {
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->work = MemsetWork(*params, true);
  node->memset_params = *params;
  return CUDA_SUCCESS;
}

CUresult ChangeHost(GraphNode* node, const CUDA_HOST_NODE_PARAMS* params) {
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->work = HostFunctionWork(params->fn, params->userData);
  node->host_params = *params;
  return CUDA_SUCCESS;
}

Work EventWork(WorkKind kind, CUevent event) {
  Work work;
  work.kind = kind;
  work.event = AsEvent(event);
  return work;
}

CUresult Result(const GraphNode* node) {
  return node == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                     size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  Work work;
  if (params == nullptr || !KernelNodeWork(*params, &work)) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* made = Add(node, graph, after, count, CU_GRAPH_NODE_TYPE_KERNEL, std::move(work));
  if (made != nullptr) made->kernel_params = *params;
  return Result(made);
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                  size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  Work work;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!BoxCopyWork(*params, true, &work)) return CUDA_ERROR_NOT_SUPPORTED;
  GraphNode* made = Add(node, graph, after, count, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(work));
  if (made != nullptr) made->copy_params = *params;
  return Result(made);
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                  size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* made =
      Add(node, graph, after, count, CU_GRAPH_NODE_TYPE_MEMSET, MemsetWork(*params, true));
  if (made != nullptr) made->memset_params = *params;
  return Result(made);
}

CUresult sim_cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* made = Add(node, graph, after, count, CU_GRAPH_NODE_TYPE_HOST,
                        HostFunctionWork(params->fn, params->userData));
  if (made != nullptr) made->host_params = *params;
  return Result(made);
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                 size_t count) {
  Work work;
  work.kind = WorkKind::kEmpty;
  return Result(Add(node, graph, after, count, CU_GRAPH_NODE_TYPE_EMPTY, std::move(work)));
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                      size_t count, CUgraph child) {
  Graph* inner = AsGraph(child);
  if (inner == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.kind = WorkKind::kChildGraph;
  work.child = CloneGraph(inner, true);
  GraphNode* made = Add(node, graph, after, count, CU_GRAPH_NODE_TYPE_GRAPH, std::move(work));
  if (made != nullptr) made->child = made->work.child;
  return Result(made);
}

CUresult sim_cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                       size_t count, CUevent event) {
  if (AsEvent(event) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Result(Add(node, graph, after, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                    EventWork(WorkKind::kEventRecord, event)));
}

CUresult sim_cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                     size_t count, CUevent event) {
  if (AsEvent(event) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Result(Add(node, graph, after, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                    EventWork(WorkKind::kEventWait, event)));
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                               const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& given = params->kernel;
      CUDA_KERNEL_NODE_PARAMS kernel{};
      kernel.func = given.func;
      kernel.gridDimX = given.gridDimX;
      kernel.gridDimY = given.gridDimY;
      kernel.gridDimZ = given.gridDimZ;
      kernel.blockDimX = given.blockDimX;
      kernel.blockDimY = given.blockDimY;
      kernel.blockDimZ = given.blockDimZ;
      kernel.sharedMemBytes = given.sharedMemBytes;
      kernel.kern = given.kern;
      return sim_cuGraphAddKernelNode_v2(node, graph, after, count, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return sim_cuGraphAddMemcpyNode(node, graph, after, count, &params->memcpy.copyParams,
                                      nullptr);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return sim_cuGraphAddEmptyNode(node, graph, after, count);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  GraphNode* node = AsNode(handle);
  if (node == nullptr || node->child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = Handle(node->child);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* params) {
  GraphNode* node = AsNode(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  *params = node->kernel_params;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* params) {
  GraphNode* node = AsNode(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_MEMCPY) return CUDA_ERROR_INVALID_VALUE;
  *params = node->copy_params;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* params) {
  GraphNode* node = AsNode(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
  *params = node->memset_params;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  return ChangeKernel(AsNode(node), params);
}
CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return ChangeCopy(AsNode(node), params);
}
CUresult sim_cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return ChangeMemset(AsNode(node), params);
}
CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS* params) {
  return ChangeKernel(NodeOfExec(exec, node), params);
}
CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMCPY3D* params, CUcontext) {
  return ChangeCopy(NodeOfExec(exec, node), params);
}
CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return ChangeMemset(NodeOfExec(exec, node), params);
}
CUresult sim_cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_HOST_NODE_PARAMS* params) {
  return ChangeHost(NodeOfExec(exec, node), params);
}

}  // extern "C"
