// Graphs.
#include "runtime_api.gen.h"
#include "tests/fakes/cudart/copy_direction.h"
#include "tests/fakes/cudart/registry.h"
#include "tests/fakes/cudart/runtime_call.h"

using namespace ranktap::standin;

namespace {

cudaError_t ToDriver(const cudaKernelNodeParams& params, CUDA_KERNEL_NODE_PARAMS* out) {
  *out = {};
  cudaError_t found = FindKernel(params.func, &out->func);
  out->gridDimX = params.gridDim.x;
  out->gridDimY = params.gridDim.y;
  out->gridDimZ = params.gridDim.z;
  out->blockDimX = params.blockDim.x;
  out->blockDimY = params.blockDim.y;
  out->blockDimZ = params.blockDim.z;
  out->sharedMemBytes = params.sharedMemBytes;
  out->kernelParams = params.kernelParams;
  out->extra = params.extra;
  return found;
}

}  // namespace

#define FORWARD(call)                  \
  cudaError_t ready = EnsureContext(); \
  return ready != cudaSuccess ? ready : ToRuntime(TheDriver().call)

extern "C" {

cudaError_t sim_cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  FORWARD(cuGraphCreate(graph, flags));
}

cudaError_t sim_cudaGraphDestroy(cudaGraph_t graph) { FORWARD(cuGraphDestroy(graph)); }

cudaError_t sim_cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  FORWARD(cuGraphClone(clone, graph));
}

cudaError_t sim_cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS driver_params;
  cudaError_t ready = EnsureContext();
  if (ready == cudaSuccess) ready = ToDriver(*params, &driver_params);
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuGraphAddKernelNode_v2(node, graph, after, count, &driver_params));
}

cudaError_t sim_cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS driver_params;
  cudaError_t ready = EnsureContext();
  if (ready == cudaSuccess) ready = ToDriver(*params, &driver_params);
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuGraphKernelNodeSetParams_v2(node, &driver_params));
}

cudaError_t sim_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS driver_params;
  cudaError_t ready = EnsureContext();
  if (ready == cudaSuccess) ready = ToDriver(*params, &driver_params);
  if (ready != cudaSuccess) return ready;
  return ToRuntime(TheDriver().cuGraphExecKernelNodeSetParams_v2(exec, node, &driver_params));
}

cudaError_t sim_cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       const cudaMemcpy3DParms* params) {
  CUDA_MEMCPY3D box;
  if (params == nullptr) return cudaErrorInvalidValue;
  if (!BoxOf(*params, &box)) return cudaErrorNotSupported;
  FORWARD(cuGraphAddMemcpyNode(node, graph, after, count, &box,
                               TheDriver().machine->current_context()));
}

cudaError_t sim_cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                         const cudaGraphNode_t* after, size_t count, void* dst,
                                         const void* src, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms params{};
  params.srcPtr = {const_cast<void*>(src), bytes, bytes, 1};
  params.dstPtr = {dst, bytes, bytes, 1};
  params.extent = {bytes, 1, 1};
  params.kind = kind;
  return sim_cudaGraphAddMemcpyNode(node, graph, after, count, &params);
}

cudaError_t sim_cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       const cudaMemsetParams* params) {
  CUDA_MEMSET_NODE_PARAMS driver_params{Address(params->dst), params->pitch, params->value,
                                        params->elementSize,  params->width, params->height};
  FORWARD(cuGraphAddMemsetNode(node, graph, after, count, &driver_params,
                               TheDriver().machine->current_context()));
}

cudaError_t sim_cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, size_t count,
                                     const cudaHostNodeParams* params) {
  CUDA_HOST_NODE_PARAMS driver_params{params->fn, params->userData};
  FORWARD(cuGraphAddHostNode(node, graph, after, count, &driver_params));
}

cudaError_t sim_cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* after, size_t count) {
  FORWARD(cuGraphAddEmptyNode(node, graph, after, count));
}

cudaError_t sim_cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* after, size_t count,
                                           cudaGraph_t child) {
  FORWARD(cuGraphAddChildGraphNode(node, graph, after, count, child));
}

cudaError_t sim_cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                            const cudaGraphNode_t* after, size_t count,
                                            cudaEvent_t event) {
  FORWARD(cuGraphAddEventRecordNode(node, graph, after, count, event));
}

cudaError_t sim_cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                          const cudaGraphNode_t* after, size_t count,
                                          cudaEvent_t event) {
  FORWARD(cuGraphAddEventWaitNode(node, graph, after, count, event));
}

cudaError_t sim_cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                         const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                         size_t count) {
  if (edges != nullptr) return cudaErrorNotSupported;
  FORWARD(cuGraphAddDependencies_v2(graph, from, to, nullptr, count));
}

cudaError_t sim_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  FORWARD(cuGraphGetNodes(graph, nodes, count));
}

cudaError_t sim_cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  FORWARD(cuGraphGetRootNodes(graph, nodes, count));
}

cudaError_t sim_cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                  cudaGraphEdgeData* edges, size_t* count) {
  if (edges != nullptr) return cudaErrorNotSupported;
  FORWARD(cuGraphGetEdges_v2(graph, from, to, nullptr, count));
}

cudaError_t sim_cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  FORWARD(cuGraphNodeGetType(node, reinterpret_cast<CUgraphNodeType*>(type)));
}

cudaError_t sim_cudaGraphDestroyNode(cudaGraphNode_t node) { FORWARD(cuGraphDestroyNode(node)); }

cudaError_t sim_cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                              unsigned long long flags) {
  FORWARD(cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t sim_cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                     unsigned long long flags) {
  return sim_cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t sim_cudaGraphExecDestroy(cudaGraphExec_t exec) { FORWARD(cuGraphExecDestroy(exec)); }

cudaError_t sim_cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  cuuint64_t value = 0;
  cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  RETURN_IF_ERROR(TheDriver().cuGraphExecGetFlags(exec, &value));
  *flags = value;
  return cudaSuccess;
}

cudaError_t sim_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  FORWARD(cuGraphLaunch(exec, stream));
}

cudaError_t sim_cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  FORWARD(cuGraphUpload(exec, stream));
}

cudaError_t sim_cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                    cudaGraphExecUpdateResultInfo* info) {
  static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
  FORWARD(cuGraphExecUpdate_v2(exec, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(info)));
}

cudaError_t sim_cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                        unsigned int enabled) {
  FORWARD(cuGraphNodeSetEnabled(exec, node, enabled));
}

cudaError_t sim_cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                        unsigned int* enabled) {
  FORWARD(cuGraphNodeGetEnabled(exec, node, enabled));
}

cudaError_t sim_cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  FORWARD(cuGraphChildGraphNodeGetGraph(node, graph));
}

}  // extern "C"
