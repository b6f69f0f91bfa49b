#include "tests/fakes/machine/schedule.h"

#include <algorithm>
#include <atomic>

#include "tests/fakes/machine/announce.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/clock.h"
#include "tests/fakes/machine/deferred.h"
#include "tests/fakes/machine/device.h"
#include "tests/fakes/machine/graph.h"
#include "tests/fakes/machine/truth_log.h"

namespace ranktap::standin {
namespace {

// What a real channel holds before a launch has to wait for room.
constexpr size_t kMostOutstanding = 1024;
// A host that runs further ahead than this waits: outstanding work of the model's usual length.
constexpr uint64_t kFurthestAheadNs = 10'000'000'000;

std::atomic<uint64_t> g_serial{0};
std::atomic<uint64_t> g_event_sync{0};

void FillIdentity(const Stream& stream, Operation& operation) {
  const ThreadState& thread = CurrentThread();
  operation.device = stream.context->device;
  operation.context_id = stream.context->id;
  operation.stream_id = stream.id;
  operation.correlation = thread.correlation;
  operation.api_domain = thread.outer_domain;
  operation.api_cbid = thread.outer_cbid;
  operation.serial = g_serial.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Waits for room outside the lock and reports the wait.
void WaitForRoom(Stream* stream) {
  uint64_t until = 0;
  {
    std::lock_guard lock(MachineLock());
    auto& ends = stream->outstanding;
    uint64_t now = DeviceNow();
    while (!ends.empty() && ends.front() <= now) ends.pop_front();
    if (ends.size() >= kMostOutstanding) until = ends.front();
    if (stream->tail_ns > now + kFurthestAheadNs) until = stream->tail_ns - kFurthestAheadNs;
  }
  if (until == 0) return;
  Overhead overhead{OverheadKind::kCommandBufferFull, DeviceNow(), 0,
                    CurrentThread().correlation,      ThreadId(),  "command buffer full"};
  WaitUntilDevice(until);
  overhead.end_ns = DeviceNow();
  Announce(overhead);
}

void AnnounceSynchronization(SynchronizationKind kind, const Context& context, const Stream* stream,
                             const Event* event, uint64_t start_ns) {
  Synchronization sync{};
  sync.kind = kind;
  sync.context = reinterpret_cast<CUcontext>(const_cast<Context*>(&context));
  sync.stream = reinterpret_cast<CUstream>(const_cast<Stream*>(stream));
  sync.context_id = context.id;
  sync.stream_id = stream == nullptr ? UINT32_MAX : stream->id;
  sync.event_id = event == nullptr ? UINT32_MAX : event->id;
  sync.event_sync_id = event == nullptr ? 0 : event->sync_id;
  sync.correlation = CurrentThread().correlation;
  sync.start_ns = start_ns;
  sync.end_ns = DeviceNow();
  Announce(sync);
}

// The legacy stream may not be used while a blocking stream of its context captures (CUDA's rule).
bool LegacyDuringCapture(const Stream& stream) {
  if (!stream.is_legacy()) return false;
  for (Stream* other : stream.context->streams) {
    if (other->capture != nullptr && other->blocking()) {
      other->capture->invalidated = true;
      return true;
    }
  }
  return false;
}

}  // namespace

uint64_t Place(const Stream& stream, uint64_t earliest_ns, Work& work) {
  Operation& operation = work.operation;
  FillIdentity(stream, operation);
  operation.start_ns = earliest_ns;
  operation.end_ns = earliest_ns + work.duration_ns;
  if (work.kind == WorkKind::kHostFunction) {
    Defer(earliest_ns, work.effect);
    LogHostFunction(stream.id, stream.context->id, operation.correlation, earliest_ns,
                    operation.end_ns);
  } else if (work.effect) {
    if (AnyDeferred()) {
      Defer(operation.end_ns, work.effect);
    } else {
      work.effect();
    }
  }
  return operation.end_ns;
}

CUresult Submit(Stream* stream, Work work, uint64_t* finished_ns) {
  WaitForRoom(stream);
  std::unique_lock lock(MachineLock());
  if (stream->capture != nullptr) {
    if (finished_ns != nullptr) *finished_ns = 0;
    return CaptureWork(lock, stream, std::move(work));
  }
  if (LegacyDuringCapture(*stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  uint64_t now = DeviceNow();
  work.operation.queued_ns = now;
  work.operation.submitted_ns = now + LaunchLatency() / 2;
  uint64_t start = std::max(now + LaunchLatency(), ReadyAt(*stream));
  stream->tail_ns = Place(*stream, start, work);
  stream->outstanding.push_back(stream->tail_ns);
  // The tool's own command for its times takes a place as well.
  const ToolHooks* hooks = Hooks();
  if (hooks != nullptr && hooks->traces_launches()) stream->outstanding.push_back(stream->tail_ns);
  lock.unlock();
  if (finished_ns != nullptr) *finished_ns = work.operation.end_ns;
  if (work.kind == WorkKind::kOperation) Announce(work.operation);
  return CUDA_SUCCESS;
}

CUresult RecordEvent(Stream* stream, Event* event) {
  std::unique_lock lock(MachineLock());
  if (stream->capture != nullptr) return CaptureEventRecord(stream, event);
  if (LegacyDuringCapture(*stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  event->recorded = true;
  event->capture = nullptr;
  event->stream = stream;
  event->time_ns = std::max(DeviceNow(), ReadyAt(*stream));
  event->sync_id = g_event_sync.fetch_add(1, std::memory_order_relaxed) + 1;
  EventRecord record{stream->context->device, stream->context->id,         stream->id,    event->id,
                     event->sync_id,          CurrentThread().correlation, event->time_ns};
  lock.unlock();
  Announce(record);
  return CUDA_SUCCESS;
}

CUresult WaitEvent(Stream* stream, Event* event) {
  uint64_t start = DeviceNow();
  {
    std::lock_guard lock(MachineLock());
    if (event->capture != nullptr) return CaptureEventWait(stream, event);
    if (stream->capture != nullptr) {
      stream->capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!event->recorded) return CUDA_SUCCESS;
    stream->tail_ns = std::max(stream->tail_ns, event->time_ns);
  }
  AnnounceSynchronization(SynchronizationKind::kStreamWaitEvent, *stream->context, stream, event,
                          start);
  return CUDA_SUCCESS;
}

void HostWait(uint64_t until_ns) {
  WaitUntilDevice(until_ns);
  WaitForDeferred(until_ns);
}

bool ReachedByNow(uint64_t moment_ns) { return DeviceNow() >= moment_ns; }

bool AnyCapture(const Context& context) {
  for (const Stream* stream : context.streams) {
    if (stream->capture != nullptr) return true;
  }
  return false;
}

CUresult SynchronizeStream(Stream* stream) {
  uint64_t start = DeviceNow(), until;
  {
    std::lock_guard lock(MachineLock());
    if (stream->capture != nullptr) {
      stream->capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (LegacyDuringCapture(*stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    until = ReadyAt(*stream);
  }
  HostWait(until);
  AnnounceSynchronization(SynchronizationKind::kStream, *stream->context, stream, nullptr, start);
  return CUDA_SUCCESS;
}

CUresult SynchronizeContext(Context* context) {
  uint64_t start = DeviceNow(), until;
  {
    std::lock_guard lock(MachineLock());
    for (Stream* stream : context->streams) {
      if (stream->capture == nullptr) continue;
      stream->capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    until = ContextTail(*context);
  }
  HostWait(until);
  AnnounceSynchronization(SynchronizationKind::kContext, *context, nullptr, nullptr, start);
  return CUDA_SUCCESS;
}

CUresult SynchronizeEvent(Event* event) {
  uint64_t start = DeviceNow(), until;
  {
    std::lock_guard lock(MachineLock());
    if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    if (!event->recorded) return CUDA_SUCCESS;
    until = event->time_ns;
  }
  HostWait(until);
  AnnounceSynchronization(SynchronizationKind::kEvent, *event->context, event->stream, event,
                          start);
  return CUDA_SUCCESS;
}

}  // namespace ranktap::standin
