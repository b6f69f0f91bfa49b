// What a resource's callback is about.
// Runs on: user threads, inside CUDA calls.  May not: allocate, lock, log, call CUDA.
#include "agent/sources/cupti/cupti_resources.h"

#include "agent/sources/cupti/cupti_callbacks.h"

namespace ranktap::agent::cupti {
namespace {

using proto::ResourceChange;
using proto::ResourceEvent;

uint64_t Word(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

uint32_t ContextIdOf(void* context) {
  uint32_t id = 0;
  if (context != nullptr) g_callbacks.api->GetContextId(context, &id);
  return id;
}
uint32_t GraphIdOf(void* graph) {
  uint32_t id = 0;
  if (graph != nullptr && g_callbacks.api->GetGraphId != nullptr) {
    g_callbacks.api->GetGraphId(graph, &id);
  }
  return id;
}
uint32_t GraphExecIdOf(void* exec) {
  uint32_t id = 0;
  if (exec != nullptr && g_callbacks.api->GetGraphExecId != nullptr) {
    g_callbacks.api->GetGraphExecId(exec, &id);
  }
  return id;
}
uint64_t NodeIdOf(void* node) {
  uint64_t id = 0;
  if (node != nullptr && g_callbacks.api->GetGraphNodeId != nullptr) {
    g_callbacks.api->GetGraphNodeId(node, &id);
  }
  return id;
}

// Fills in what the change is about; false for resources that are not recorded.
bool DescribeGraph(ResourceCbid cbid, const GraphData& graph, ResourceEvent& event) {
  switch (cbid) {
    case ResourceCbid::kGraphCreated:
    case ResourceCbid::kGraphDestroyStarting:
    case ResourceCbid::kGraphCloned:
      event.change = cbid == ResourceCbid::kGraphCreated  ? ResourceChange::kGraphCreated
                     : cbid == ResourceCbid::kGraphCloned ? ResourceChange::kGraphCloned
                                                          : ResourceChange::kGraphDestroyed;
      event.handle = Word(graph.graph);
      event.id = GraphIdOf(graph.graph);
      if (cbid == ResourceCbid::kGraphCloned) event.parent = GraphIdOf(graph.original_graph);
      return true;
    case ResourceCbid::kGraphExecCreated:
    case ResourceCbid::kGraphExecDestroyStarting:
      event.change = cbid == ResourceCbid::kGraphExecCreated ? ResourceChange::kGraphExecCreated
                                                             : ResourceChange::kGraphExecDestroyed;
      event.handle = Word(graph.graph_exec);
      event.id = GraphExecIdOf(graph.graph_exec);
      // The program may have destroyed the graph long before: CUPTI would look into its memory. The
      // event of its creation says which it was.
      if (cbid == ResourceCbid::kGraphExecCreated) event.parent = GraphIdOf(graph.graph);
      return true;
    case ResourceCbid::kGraphNodeCreated:
    case ResourceCbid::kGraphNodeDestroyStarting:
    case ResourceCbid::kGraphNodeCloned:
      event.change = cbid == ResourceCbid::kGraphNodeCreated  ? ResourceChange::kNodeCreated
                     : cbid == ResourceCbid::kGraphNodeCloned ? ResourceChange::kNodeCloned
                                                              : ResourceChange::kNodeDestroyed;
      event.handle = Word(graph.node);
      event.id = NodeIdOf(graph.node);
      event.parent = cbid == ResourceCbid::kGraphNodeCloned    ? NodeIdOf(graph.original_node)
                     : cbid == ResourceCbid::kGraphNodeCreated ? GraphIdOf(graph.graph)
                                                               : 0;
      event.node_type = graph.node_type;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool DescribeResource(ResourceCbid cbid, const ResourceData& data, ResourceEvent& event) {
  switch (cbid) {
    case ResourceCbid::kContextCreated:
    case ResourceCbid::kContextDestroyStarting:
      event.change = cbid == ResourceCbid::kContextCreated ? ResourceChange::kContextCreated
                                                           : ResourceChange::kContextDestroyed;
      event.handle = Word(data.context);
      event.id = ContextIdOf(data.context);
      return true;
    case ResourceCbid::kStreamCreated:
    case ResourceCbid::kStreamDestroyStarting: {
      event.change = cbid == ResourceCbid::kStreamCreated ? ResourceChange::kStreamCreated
                                                          : ResourceChange::kStreamDestroyed;
      uint32_t id = 0;
      g_callbacks.api->GetStreamIdEx(data.context, data.stream, 0, &id);
      event.handle = Word(data.stream);
      event.id = id;
      event.parent = ContextIdOf(data.context);
      return true;
    }
    case ResourceCbid::kModuleLoaded:
    case ResourceCbid::kModuleUnloadStarting: {
      const auto* module = static_cast<const ModuleData*>(data.descriptor);
      if (module == nullptr) return false;
      event.change = cbid == ResourceCbid::kModuleLoaded ? ResourceChange::kModuleLoaded
                                                         : ResourceChange::kModuleUnloaded;
      event.handle = module->cubin_bytes;
      event.id = module->module_id;
      return true;
    }
    default:
      return data.descriptor != nullptr &&
             DescribeGraph(cbid, *static_cast<const GraphData*>(data.descriptor), event);
  }
}

}  // namespace ranktap::agent::cupti
