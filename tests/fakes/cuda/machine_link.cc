#include "tests/fakes/cuda/machine_link.h"

#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/clock.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/device.h"
#include "tests/fakes/machine/function.h"
#include "tests/fakes/machine/graph.h"
#include "tests/fakes/machine/memory.h"
#include "tests/fakes/machine/script.h"
#include "tests/fakes/machine/truth_log.h"

namespace ranktap::standin {
namespace {

bool FactsOfDevice(uint32_t device, DeviceFacts* facts) {
  if (device >= DeviceCount()) return false;
  *facts = FactsOf(device);
  return true;
}

CUcontext CurrentContextHandle() { return reinterpret_cast<CUcontext>(CurrentThread().current()); }

uint32_t ContextId(CUcontext handle) {
  const Context* context = AsContext(handle);
  return context == nullptr ? 0 : context->id;
}

bool ContextFacts(CUcontext handle, Resource* facts) {
  const Context* context = AsContext(handle);
  if (context == nullptr) return false;
  *facts = DescribeContext(*context, ResourceChange::kContextCreated);
  return true;
}

bool StreamId(CUcontext context, CUstream handle, bool per_thread, uint32_t* id) {
  ThreadState& thread = CurrentThread();
  ThreadState saved = thread;
  if (Context* given = AsContext(context)) {
    thread.contexts[0] = given;
    thread.context_count = 1;
  }
  thread.per_thread_default = per_thread;
  const Stream* stream = AsStream(handle);
  thread = saved;
  if (stream == nullptr) return false;
  *id = stream->id;
  return true;
}

uint32_t GraphId(CUgraph handle) {
  const Graph* graph = AsGraph(handle);
  return graph == nullptr ? 0 : graph->id;
}

uint32_t ExecId(CUgraphExec handle) {
  const GraphExec* exec = AsExec(handle);
  return exec == nullptr ? 0 : exec->id;
}

uint64_t NodeId(CUgraphNode handle) {
  const GraphNode* node = AsNode(handle);
  return node == nullptr ? 0 : node->id;
}

void ForEachResource(void (*visit)(const Resource&)) {
  std::vector<Resource> resources;
  {
    std::lock_guard lock(MachineLock());
    for (const Context* context : AllContexts()) {
      if (!context->alive) continue;
      resources.push_back(DescribeContext(*context, ResourceChange::kContextCreated));
      resources.push_back(DescribeStream(*context->legacy, ResourceChange::kStreamCreated));
      for (const Stream* stream : context->streams) {
        if (!stream->alive) continue;
        resources.push_back(DescribeStream(*stream, ResourceChange::kStreamCreated));
      }
    }
  }
  for (const Resource& resource : resources) visit(resource);
}

const char* FunctionName(CUfunction handle) {
  const Function* function = AsFunction(handle);
  return function == nullptr ? nullptr : function->name;
}

}  // namespace

const MachineLink* TheMachineLink() {
  static const MachineLink link = {
      .begin_call = BeginCall,
      .end_call = EndCall,
      .abandon_call = AbandonCall,
      .initialize = InitializeMachine,
      .initialized = Initialized,
      .in_forked_child = InForkedChild,
      .setting = Setting,
      .settings_generation = SettingsGeneration,
      .take_failure = TakeScriptedFailure,
      .note_refusal = LogRefusal,
      .note_violation = LogViolation,
      .device_clock_ns = DeviceNow,
      .set_hooks = SetHooks,
      .thread_id = ThreadId,
      .in_tool_callback = [] { return CurrentThread().tool_callback_depth > 0; },
      .enter_tool_callback = [](int delta) { CurrentThread().tool_callback_depth += delta; },
      .current_context = CurrentContextHandle,
      .device_facts = FactsOfDevice,
      .device_count = DeviceCount,
      .context_id = ContextId,
      .context_facts = ContextFacts,
      .stream_id = StreamId,
      .graph_id = GraphId,
      .graph_exec_id = ExecId,
      .graph_node_id = NodeId,
      .for_each_resource = ForEachResource,
      .function_name = FunctionName,
      .note_subscription = LogSubscription,
      .take_device_memory = TakeDeviceMemory,
  };
  return &link;
}

}  // namespace ranktap::standin

extern "C" {
__attribute__((visibility("default"))) extern const ranktap::standin::Marker ranktap_standin_marker;
const ranktap::standin::Marker ranktap_standin_marker = {1, ranktap::standin::ChangeSetting};
}
