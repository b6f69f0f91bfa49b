#include "tests/fakes/cupti/device_buffers.h"

#include <map>
#include <mutex>

#include "tests/fakes/cupti/refusal.h"

namespace ranktap::standin {
namespace {

constexpr uint64_t kBytes = 3'200'000;  // the defaults of attributes 0, 2 and 6
constexpr uint64_t kMost = 250;
constexpr uint64_t kAtFirst = 3;

struct Context {
  uint64_t buffers = 0, nodes = 0;
};

struct Pool {
  std::mutex mutex;
  uint64_t most = kMost;
  std::map<uint32_t, Context> contexts;
};

Pool& ThePool() {
  static Pool* pool = new Pool;
  return *pool;
}

void Grow(Context& context, uint32_t device, uint64_t wanted) {
  while (context.buffers < wanted && Machine()->take_device_memory(device, kBytes)) {
    ++context.buffers;
  }
}

}  // namespace

void SetDeviceBufferLimit(uint64_t most) {
  Pool& pool = ThePool();
  std::lock_guard lock(pool.mutex);
  pool.most = most;
}

bool HoldsTimes(const Operation& operation) {
  Pool& pool = ThePool();
  std::lock_guard lock(pool.mutex);
  Context& context = pool.contexts[operation.context_id];
  if (context.buffers == 0) Grow(context, operation.device, kAtFirst);
  if (operation.graph_id == 0 || operation.kind == OperationKind::kGraph) return true;
  const uint64_t records = Script().device_buffer_records;
  const uint64_t wanted = context.nodes / records + 1;
  if (wanted <= pool.most) Grow(context, operation.device, wanted);
  if (wanted > context.buffers) return false;
  ++context.nodes;
  return true;
}

}  // namespace ranktap::standin
