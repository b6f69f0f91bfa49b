#include "tests/fakes/machine/announce.h"

#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/truth_log.h"

namespace ranktap::standin {

void Announce(const Operation& operation) {
  LogOperation(operation);
  if (const ToolHooks* hooks = Hooks()) hooks->on_operation(operation);
}

void Announce(const Synchronization& synchronization) {
  LogSynchronization(synchronization);
  if (const ToolHooks* hooks = Hooks()) hooks->on_synchronization(synchronization);
}

void Announce(const EventRecord& record) {
  LogEventRecord(record);
  if (const ToolHooks* hooks = Hooks()) hooks->on_event_record(record);
}

void Announce(const MemoryOperation& memory) {
  LogMemory(memory);
  if (const ToolHooks* hooks = Hooks()) hooks->on_memory(memory);
}

void Announce(const PoolOperation& pool) {
  LogPool(pool);
  if (const ToolHooks* hooks = Hooks()) hooks->on_pool(pool);
}

void Announce(const Resource& resource) {
  LogResource(resource);
  if (const ToolHooks* hooks = Hooks()) hooks->on_resource(resource);
}

void Announce(const Overhead& overhead) {
  LogOverhead(overhead);
  if (const ToolHooks* hooks = Hooks()) hooks->on_overhead(overhead);
}

void Announce(const Compilation& compilation) {
  LogCompilation(compilation);
  if (const ToolHooks* hooks = Hooks()) hooks->on_compilation(compilation);
}

}  // namespace ranktap::standin
