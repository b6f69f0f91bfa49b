// Graphs: captured from streams or built by hand, instantiated into executables, launched.
//
// As contexts: guarded by MachineLock(), never freed, handles are pointers.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "tests/fakes/machine/context.h"

namespace ranktap::standin {

inline constexpr uint32_t kGraphMagic = 0x67726131;
inline constexpr uint32_t kNodeMagic = 0x6e6f6431;
inline constexpr uint32_t kExecMagic = 0x65786531;

struct GraphNode {
  uint32_t magic = kNodeMagic;
  bool alive = true;
  bool enabled = true;
  uint64_t id = 0;  // graph id in the upper half
  Graph* graph = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Work work;
  Graph* child = nullptr;
  GraphNode* original = nullptr;  // of a clone
  std::vector<GraphNode*> dependencies;
  // What the program gave, for GetParams.
  CUDA_KERNEL_NODE_PARAMS kernel_params{};
  CUDA_MEMCPY3D copy_params{};
  CUDA_MEMSET_NODE_PARAMS memset_params{};
  CUDA_HOST_NODE_PARAMS host_params{};
};

struct Graph {
  uint32_t magic = kGraphMagic;
  bool alive = true;
  uint32_t id = 0;
  uint32_t next_node = 0;
  std::vector<GraphNode*> nodes;  // in order of creation; dependencies may be added later
};

struct GraphExec {
  uint32_t magic = kExecMagic;
  bool alive = true;
  uint32_t id = 0;
  uint32_t source_id = 0;
  bool traced = false;
  uint32_t mark = UINT32_MAX;  // the tool's; there was none
  Context* context = nullptr;
  Graph* body = nullptr;
  unsigned long long flags = 0;
};

Graph* AsGraph(CUgraph handle);
GraphNode* AsNode(CUgraphNode handle);
GraphExec* AsExec(CUgraphExec handle);
CUgraph Handle(Graph* graph);
CUgraphNode Handle(GraphNode* node);
CUgraphExec Handle(GraphExec* exec);

Graph* CreateGraph();  // announced
void DestroyGraph(Graph* graph);
// Announced. The caller has filled nothing yet.
GraphNode* AddNode(Graph* graph, CUgraphNodeType type, Work work,
                   const std::vector<GraphNode*>& dependencies);
void AddDependency(GraphNode* from, GraphNode* to);
void DestroyNode(GraphNode* node);
// `id` 0 takes a new one. `announced`: as a graph of its own, not only its nodes.
Graph* CloneGraph(Graph* graph, bool announced, uint32_t id = 0);
GraphNode* FindClone(Graph* clone, GraphNode* original);
// Dependencies first; empty when they form a cycle.
std::vector<GraphNode*> TopologicalOrder(const Graph& graph);

// Null when the graph has a cycle or a dead member.
GraphExec* Instantiate(Graph* graph, Context* context, unsigned long long flags);
void DestroyExec(GraphExec* exec);
CUresult Launch(GraphExec* exec, Stream* stream);

CUresult BeginCapture(Stream* stream, CUstreamCaptureMode mode, Graph* into);
CUresult EndCapture(Stream* stream, Graph** graph);
// The parts of Submit and the event functions that run while capturing; the lock is held.
CUresult CaptureWork(std::unique_lock<std::mutex>& lock, Stream* stream, Work work);
CUresult CaptureEventRecord(Stream* stream, Event* event);
CUresult CaptureEventWait(Stream* stream, Event* event);

}  // namespace ranktap::standin
