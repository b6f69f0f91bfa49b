#include "tests/fakes/cupti/hooks.h"

#include "tests/fakes/cupti/hook_functions.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {

const ToolHooks* MachineHooks() {
  static const ToolHooks hooks = {
      .on_enter = OnEnter,
      .on_exit = OnExit,
      .on_operation = OnOperation,
      .on_synchronization = OnSynchronization,
      .on_event_record = OnEventRecord,
      .on_memory = OnMemory,
      .on_pool = OnPool,
      .on_resource = OnResource,
      .on_overhead = OnOverhead,
      .on_compilation = OnCompilation,
      .traces_graphs = [] { return KindEnabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE); },
      .mark_new_graph = MarkNewGraph,
      .traces_launches = [] { return KindEnabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL); },
  };
  return &hooks;
}

}  // namespace ranktap::standin
