#include "tests/fakes/machine/graph.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <unordered_set>

#include "tests/fakes/machine/announce.h"
#include "tests/fakes/machine/call.h"

namespace ranktap::standin {
namespace {

struct GraphHandles {
  std::mutex mutex;
  std::set<const void*> known;
};

GraphHandles& Handles() {
  static GraphHandles* handles = new GraphHandles;
  return *handles;
}

template <typename Object>
Object* KnownGraphPart(const void* handle, uint32_t magic) {
  GraphHandles& handles = Handles();
  {
    std::lock_guard lock(handles.mutex);
    if (!handles.known.contains(handle)) return nullptr;
  }
  Object* object = static_cast<Object*>(const_cast<void*>(handle));
  return object->magic == magic && object->alive ? object : nullptr;
}

void Remember(const void* handle) {
  std::lock_guard lock(Handles().mutex);
  Handles().known.insert(handle);
}

uint32_t NextGraphId() {
  static std::atomic<uint32_t> next{0};
  return next.fetch_add(1) + 1;
}

Resource Describe(ResourceChange change, Graph* graph) {
  Resource resource;
  resource.change = change;
  resource.graph = Handle(graph);
  resource.correlation = CurrentThread().correlation;
  Context* context = CurrentThread().current();
  resource.context = reinterpret_cast<CUcontext>(context);
  resource.context_id = context == nullptr ? 0 : context->id;
  return resource;
}

Resource Describe(ResourceChange change, GraphNode* node) {
  Resource resource = Describe(change, node->graph);
  resource.node = Handle(node);
  resource.node_type = node->type;
  return resource;
}

Graph* NewGraph(uint32_t id = 0) {
  Graph* graph = new Graph;
  graph->id = id == 0 ? NextGraphId() : id;
  Remember(graph);
  return graph;
}

GraphNode* NewNode(Graph* graph, CUgraphNodeType type, Work work) {
  GraphNode* node = new GraphNode;
  node->graph = graph;
  node->type = type;
  node->work = std::move(work);
  Remember(node);
  std::lock_guard lock(MachineLock());
  node->id = uint64_t{graph->id} << 32 | graph->next_node++;
  graph->nodes.push_back(node);
  return node;
}

}  // namespace

Graph* AsGraph(CUgraph handle) { return KnownGraphPart<Graph>(handle, kGraphMagic); }
GraphNode* AsNode(CUgraphNode handle) { return KnownGraphPart<GraphNode>(handle, kNodeMagic); }
GraphExec* AsExec(CUgraphExec handle) { return KnownGraphPart<GraphExec>(handle, kExecMagic); }
CUgraph Handle(Graph* graph) { return reinterpret_cast<CUgraph>(graph); }
CUgraphNode Handle(GraphNode* node) { return reinterpret_cast<CUgraphNode>(node); }
CUgraphExec Handle(GraphExec* exec) { return reinterpret_cast<CUgraphExec>(exec); }

Graph* CreateGraph() {
  Graph* graph = NewGraph();
  Announce(Describe(ResourceChange::kGraphCreated, graph));
  return graph;
}

void DestroyGraph(Graph* graph) {
  Announce(Describe(ResourceChange::kGraphDestroyStarting, graph));
  std::lock_guard lock(MachineLock());
  graph->alive = false;
  for (GraphNode* node : graph->nodes) node->alive = false;
}

GraphNode* AddNode(Graph* graph, CUgraphNodeType type, Work work,
                   const std::vector<GraphNode*>& dependencies) {
  GraphNode* node = NewNode(graph, type, std::move(work));
  Announce(Describe(ResourceChange::kGraphNodeCreated, node));
  for (GraphNode* dependency : dependencies) AddDependency(dependency, node);
  return node;
}

void AddDependency(GraphNode* from, GraphNode* to) {
  {
    std::lock_guard lock(MachineLock());
    to->dependencies.push_back(from);
  }
  Resource resource = Describe(ResourceChange::kGraphNodeDependencyCreated, to);
  resource.dependency = Handle(from);
  Announce(resource);
}

void DestroyNode(GraphNode* node) {
  Announce(Describe(ResourceChange::kGraphNodeDestroyStarting, node));
  std::lock_guard lock(MachineLock());
  node->alive = false;
  std::erase(node->graph->nodes, node);
  for (GraphNode* other : node->graph->nodes) std::erase(other->dependencies, node);
}

Graph* CloneGraph(Graph* graph, bool announced, uint32_t id) {
  Graph* clone = NewGraph(id);
  if (announced) {
    Resource resource = Describe(ResourceChange::kGraphCloned, clone);
    resource.original_graph = Handle(graph);
    Announce(resource);
  }
  std::map<GraphNode*, GraphNode*> copies;
  std::vector<GraphNode*> originals;
  {
    std::lock_guard lock(MachineLock());
    originals = graph->nodes;
  }
  for (GraphNode* original : originals) {
    GraphNode* copy = NewNode(clone, original->type, original->work);
    copy->original = original;
    copy->enabled = original->enabled;
    copy->child = original->child == nullptr ? nullptr : CloneGraph(original->child, announced);
    copy->kernel_params = original->kernel_params;
    copy->copy_params = original->copy_params;
    copy->memset_params = original->memset_params;
    copy->host_params = original->host_params;
    copies[original] = copy;
    // The copy of an instantiation is told twice, as CUPTI 13.0 does on an H100.
    if (!announced) Announce(Describe(ResourceChange::kGraphNodeCreated, copy));
    Resource resource = Describe(ResourceChange::kGraphNodeCloned, copy);
    resource.original_graph = Handle(graph);
    resource.original_node = Handle(original);
    Announce(resource);
  }
  for (auto [original, copy] : copies) {
    for (GraphNode* dependency : original->dependencies) {
      copy->dependencies.push_back(copies.at(dependency));
    }
  }
  return clone;
}

GraphNode* FindClone(Graph* clone, GraphNode* original) {
  for (GraphNode* node : clone->nodes) {
    if (node->original == original) return node;
  }
  return nullptr;
}

// One pass for nodes that were added after what they depend on.
std::vector<GraphNode*> TopologicalOrder(const Graph& graph) {
  std::unordered_set<const GraphNode*> placed;
  std::vector<GraphNode*> order;
  for (size_t before = SIZE_MAX; before != order.size();) {
    before = order.size();
    for (GraphNode* node : graph.nodes) {
      const bool ready = std::ranges::all_of(
          node->dependencies, [&placed](const GraphNode* other) { return placed.contains(other); });
      if (ready && placed.insert(node).second) order.push_back(node);
    }
    if (order.size() == graph.nodes.size()) return order;
  }
  return {};
}

GraphExec* Instantiate(Graph* graph, Context* context, unsigned long long flags) {
  if (!graph->nodes.empty() && TopologicalOrder(*graph).empty()) return nullptr;
  GraphExec* exec = new GraphExec;
  exec->id = NextGraphId();
  exec->source_id = graph->id;
  exec->context = context;
  exec->flags = flags;
  if (const ToolHooks* hooks = Hooks()) {
    exec->traced = hooks->traces_graphs();
    exec->mark = hooks->mark_new_graph();
  }
  Remember(exec);
  Resource resource = Describe(ResourceChange::kGraphExecCreateStarting, graph);
  resource.graph_exec = Handle(exec);
  Announce(resource);
  // Node ids of a launch carry the executable's id, which is what its records say too.
  exec->body = CloneGraph(graph, false, exec->id);
  resource.change = ResourceChange::kGraphExecCreated;
  Announce(resource);
  return exec;
}

void DestroyExec(GraphExec* exec) {
  Resource resource = Describe(ResourceChange::kGraphExecDestroyStarting, exec->body);
  resource.graph_exec = Handle(exec);
  Announce(resource);
  std::lock_guard lock(MachineLock());
  exec->alive = false;
}

}  // namespace ranktap::standin
