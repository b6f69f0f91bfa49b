#include "tests/fakes/machine/context.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string>

#include "tests/fakes/machine/announce.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/script.h"

namespace ranktap::standin {
namespace {

// The id real traces show for a context's default stream.
constexpr uint32_t kLegacyStreamId = 7;
constexpr uint32_t kMostDevices = 64;

struct Machine {
  std::mutex lock;
  std::atomic<bool> initialized{false};
  std::vector<Context*> contexts;
  Context* primary[kMostDevices] = {};
  uint32_t next_context_id = 1;
  uint32_t next_event_id = 1;
  std::set<const void*> handles;  // every object a program may name
};

Machine& TheMachine() {
  static Machine* machine = new Machine;
  return *machine;
}

bool IsHandle(const void* handle) {
  Machine& machine = TheMachine();
  std::lock_guard lock(machine.lock);
  return machine.handles.contains(handle);
}

Stream* PerThreadStream(Context* context) {
  for (Stream* stream : context->per_thread) {
    if (stream->thread_id == ThreadId()) return stream;
  }
  Stream* stream = new Stream;
  stream->context = context;
  stream->id = context->next_stream_id++;
  stream->thread_id = ThreadId();
  context->per_thread.push_back(stream);
  return stream;
}

}  // namespace

std::mutex& MachineLock() { return TheMachine().lock; }
bool Initialized() { return TheMachine().initialized.load(std::memory_order_acquire); }
void SetInitialized() { TheMachine().initialized.store(true, std::memory_order_release); }

uint32_t DeviceCount() {
  return static_cast<uint32_t>(std::min<uint64_t>(NumberSetting("DEVICES", 4), kMostDevices));
}

const char* DeviceName(uint32_t device) {
  static const auto* names = [] {
    auto* made = new std::vector<std::string>;
    for (uint32_t i = 0; i < kMostDevices; ++i) {
      made->push_back("Simulated GPU " + std::to_string(i));
    }
    return made;
  }();
  return device < kMostDevices ? (*names)[device].c_str() : "";
}

Context* AsContext(CUcontext handle) {
  Context* context = reinterpret_cast<Context*>(handle);
  if (context == nullptr || !IsHandle(context) || context->magic != kContextMagic) return nullptr;
  return context->alive ? context : nullptr;
}

Stream* AsStream(CUstream handle) {
  bool legacy = handle == nullptr && !CurrentThread().per_thread_default;
  if (legacy || handle == CU_STREAM_LEGACY) {
    Context* context = CurrentThread().current();
    return context == nullptr || !context->alive ? nullptr : context->legacy;
  }
  if (handle == nullptr || handle == CU_STREAM_PER_THREAD) {
    Context* context = CurrentThread().current();
    if (context == nullptr || !context->alive) return nullptr;
    std::lock_guard lock(MachineLock());
    return PerThreadStream(context);
  }
  Stream* stream = reinterpret_cast<Stream*>(handle);
  if (!IsHandle(stream) || stream->magic != kStreamMagic || !stream->alive) return nullptr;
  return stream->context->alive ? stream : nullptr;
}

Event* AsEvent(CUevent handle) {
  Event* event = reinterpret_cast<Event*>(handle);
  if (event == nullptr || !IsHandle(event) || event->magic != kEventMagic) return nullptr;
  return event->alive ? event : nullptr;
}

Context* CreateContext(uint32_t device, unsigned flags, bool primary) {
  Machine& machine = TheMachine();
  Context* context = new Context;
  Stream* legacy = new Stream;
  std::lock_guard lock(machine.lock);
  context->id = machine.next_context_id++;
  context->device = device;
  context->flags = flags;
  context->primary = primary;
  context->alive = true;
  context->legacy = legacy;
  legacy->context = context;
  legacy->id = kLegacyStreamId;
  machine.contexts.push_back(context);
  machine.handles.insert(context);
  machine.handles.insert(legacy);
  return context;
}

Context* PrimaryContext(uint32_t device) {
  Machine& machine = TheMachine();
  std::lock_guard lock(machine.lock);
  return device < kMostDevices ? machine.primary[device] : nullptr;
}

void SetPrimaryContext(uint32_t device, Context* context) {
  Machine& machine = TheMachine();
  std::lock_guard lock(machine.lock);
  machine.primary[device] = context;
}

Resource DescribeContext(const Context& context, ResourceChange change) {
  Resource resource;
  resource.change = change;
  resource.context = reinterpret_cast<CUcontext>(const_cast<Context*>(&context));
  resource.device = context.device;
  resource.context_id = context.id;
  resource.null_stream_id = context.legacy->id;
  resource.correlation = CurrentThread().correlation;
  return resource;
}

Resource DescribeStream(const Stream& stream, ResourceChange change) {
  Resource resource = DescribeContext(*stream.context, change);
  resource.stream = reinterpret_cast<CUstream>(const_cast<Stream*>(&stream));
  resource.stream_id = stream.id;
  resource.stream_priority = stream.priority;
  resource.stream_flag = stream.is_legacy() ? 3 : stream.blocking() ? 1 : 2;
  return resource;
}

void AnnounceContext(const Context& context) {
  Announce(DescribeContext(context, ResourceChange::kContextCreated));
  Announce(DescribeStream(*context.legacy, ResourceChange::kStreamCreated));
}

void DestroyContext(Context* context) {
  Announce(DescribeContext(*context, ResourceChange::kContextDestroyStarting));
  Machine& machine = TheMachine();
  std::lock_guard lock(machine.lock);
  context->alive = false;
  if (machine.primary[context->device] == context) machine.primary[context->device] = nullptr;
}

const std::vector<Context*>& AllContexts() { return TheMachine().contexts; }

Stream* CreateStream(Context* context, unsigned flags, int priority) {
  Stream* stream = new Stream;
  std::lock_guard lock(MachineLock());
  stream->context = context;
  stream->id = context->next_stream_id++;
  stream->flags = flags;
  stream->priority = priority;
  context->streams.push_back(stream);
  TheMachine().handles.insert(stream);
  return stream;
}

Event* CreateEvent(Context* context, unsigned flags) {
  Event* event = new Event;
  std::lock_guard lock(MachineLock());
  event->id = TheMachine().next_event_id++;
  event->context = context;
  event->flags = flags;
  TheMachine().handles.insert(event);
  return event;
}

uint64_t ReadyAt(const Stream& stream) {
  const Context& context = *stream.context;
  uint64_t ready = stream.tail_ns;
  if (!stream.is_legacy()) {
    return stream.blocking() ? std::max(ready, context.legacy->tail_ns) : ready;
  }
  for (const auto* streams : {&context.streams, &context.per_thread}) {
    for (const Stream* other : *streams) {
      if (other->blocking()) ready = std::max(ready, other->tail_ns);
    }
  }
  return ready;
}

uint64_t ContextTail(const Context& context) {
  uint64_t tail = context.legacy->tail_ns;
  for (const auto* streams : {&context.streams, &context.per_thread}) {
    for (const Stream* stream : *streams) tail = std::max(tail, stream->tail_ns);
  }
  return tail;
}

}  // namespace ranktap::standin
