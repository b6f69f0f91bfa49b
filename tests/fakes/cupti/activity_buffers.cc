#include "tests/fakes/cupti/activity_buffers.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/fakes/cupti/client_clock.h"
#include "tests/fakes/cupti/layout.h"
#include "tests/fakes/cupti/misbehaviour.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/request_thread.h"

namespace ranktap::standin {
namespace {

struct Pending {
  size_t start_at, end_at;  // in the buffer; 0 where the record has none
  uint64_t start_ns, end_ns;
};

struct Buffer {
  uint8_t* data = nullptr;
  size_t bytes = 0;
  size_t used = 0;
  size_t records = 0;
  size_t most_records = SIZE_MAX;
  uint64_t complete_ns = 0;
  uint64_t late_until_ns = 0;  // LATE_US after it was handed over
  uint64_t ticket = 0;         // in the order of handing over

  uint64_t DueNs() const { return std::max(complete_ns, late_until_ns); }
  std::vector<Pending> pending;
};

// Where a thread's records go. `current` is taken out while the client is asked for a buffer.
struct Lane {
  std::mutex mutex;
  Buffer* current = nullptr;
};

struct Buffers {
  std::atomic<CUpti_BuffersCallbackRequestFunc> request{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> complete{nullptr};
  std::atomic<bool> per_thread{true};  // the default from 13.0 on
  std::atomic<bool> zeroed{false};
  std::atomic<size_t> dropped{0};

  std::mutex lanes_mutex;
  std::set<Lane*> lanes;
  Lane shared;

  std::mutex mutex;  // of everything below
  std::condition_variable changed;
  std::deque<Buffer*> waiting;  // full, or flushed
  uint64_t last_ticket = 0;
  uint64_t delivering = 0;  // the ticket of the buffer that is with the client now; 0: none
  bool worker_started = false;
  uint32_t period_ms = 0;
};

Buffers& TheBuffers() {
  static Buffers* buffers = new Buffers;
  return *buffers;
}

void Enqueue(Buffer* buffer);

// Gives the thread's buffer back when the thread ends.
struct ThreadLane {
  Lane* lane = nullptr;
  ~ThreadLane() {
    if (lane == nullptr) return;
    Buffers& buffers = TheBuffers();
    std::lock_guard lanes_lock(buffers.lanes_mutex);
    std::lock_guard lock(lane->mutex);
    if (lane->current != nullptr) Enqueue(lane->current);
    lane->current = nullptr;
    buffers.lanes.erase(lane);
    // The lane itself stays: a flush may just have copied its address.
  }
};

Lane& LaneOfThisThread() {
  Buffers& buffers = TheBuffers();
  if (!buffers.per_thread.load(std::memory_order_relaxed)) return buffers.shared;
  static thread_local ThreadLane mine;
  if (mine.lane == nullptr) {
    mine.lane = new Lane;
    std::lock_guard lock(buffers.lanes_mutex);
    buffers.lanes.insert(mine.lane);
  }
  return *mine.lane;
}

void Deliver(Buffer* buffer) {
  if (CUpti_BuffersCallbackCompleteFunc complete = TheBuffers().complete.load()) {
    Machine()->enter_tool_callback(1);
    PutIntoClientClock(buffer->data, buffer->used);
    complete(nullptr, 0, buffer->data, buffer->bytes, buffer->used);
    Machine()->enter_tool_callback(-1);
  }
  delete buffer;
}

// The next buffer whose records are complete; null, and the moment to look again, where there is
// none. Under `mutex`.
Buffer* TakeComplete(uint64_t* next_ns) {
  std::deque<Buffer*>& waiting = TheBuffers().waiting;
  uint64_t now = Machine()->device_clock_ns();
  *next_ns = UINT64_MAX;
  bool newest_first = Script().reverse_buffers;
  for (size_t i = 0; i < waiting.size(); ++i) {
    size_t at = newest_first ? waiting.size() - 1 - i : i;
    Buffer* buffer = waiting[at];
    if (buffer->DueNs() <= now) {
      waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(at));
      return buffer;
    }
    *next_ns = std::min(*next_ns, buffer->DueNs() - now);
  }
  return nullptr;
}

void RunWorker() {
  pthread_setname_np(pthread_self(), "cupti-worker");
  Buffers& buffers = TheBuffers();
  std::unique_lock lock(buffers.mutex);
  for (;;) {
    uint64_t next_ns;
    Buffer* buffer = TakeComplete(&next_ns);
    if (buffer == nullptr) {
      uint64_t nap_ns = std::min<uint64_t>(next_ns, 1'000'000'000);
      buffers.changed.wait_for(lock, std::chrono::nanoseconds(nap_ns));
      continue;
    }
    buffers.delivering = buffer->ticket;
    lock.unlock();
    Deliver(buffer);
    lock.lock();
    buffers.delivering = 0;
    buffers.changed.notify_all();
  }
}

// Under `mutex`.
void StartWorker() {
  Buffers& buffers = TheBuffers();
  if (buffers.worker_started) return;
  buffers.worker_started = true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(RunWorker).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Enqueue(Buffer* buffer) {
  Buffers& buffers = TheBuffers();
  std::lock_guard lock(buffers.mutex);
  StartWorker();
  buffer->ticket = ++buffers.last_ticket;
  buffer->late_until_ns = Machine()->device_clock_ns() + Script().late_us * 1000;
  buffers.waiting.push_back(buffer);
  buffers.changed.notify_all();
}

// The client's own function, on the thread that needs a buffer, with no lock of ours held.
Buffer* RequestBuffer() {
  Buffers& buffers = TheBuffers();
  CUpti_BuffersCallbackRequestFunc request = buffers.request.load();
  if (request == nullptr) return nullptr;
  Buffer* buffer = new Buffer;
  size_t most = 0;
  RaiseWithinRequest();
  Machine()->enter_tool_callback(1);
  request(&buffer->data, &buffer->bytes, &most);
  Machine()->enter_tool_callback(-1);
  if (most != 0) buffer->most_records = most;
  if (buffer->data == nullptr || buffer->bytes == 0) {
    delete buffer;
    return nullptr;
  }
  if (!buffers.zeroed.load()) memset(buffer->data, 0, buffer->bytes);
  return buffer;
}

Buffer* RequestBufferOnOwnThread() {
  Buffer* fresh = nullptr;
  AskOnOwnThread([](void* result) { *static_cast<Buffer**>(result) = RequestBuffer(); }, &fresh);
  return fresh;
}

Lane& LaneOfOwnThread() {
  static Lane* lane = [] {
    std::lock_guard lock(TheBuffers().lanes_mutex);
    return *TheBuffers().lanes.insert(new Lane).first;
  }();
  return *lane;
}

bool HasRoom(const Buffer& buffer, size_t bytes) {
  return buffer.used + bytes <= buffer.bytes && buffer.records < buffer.most_records;
}

void CheckZeroed(const uint8_t* at, size_t bytes) {
  if (!TheBuffers().zeroed.load(std::memory_order_relaxed)) return;
  if (std::any_of(at, at + bytes, [](uint8_t byte) { return byte != 0; })) {
    Machine()->note_violation("activity buffer not zeroed, though the client said it would be");
  }
}

void Append(Buffer& buffer, const Record& record, size_t bytes) {
  uint8_t* at = buffer.data + buffer.used;
  CheckZeroed(at, bytes);
  memcpy(at, record.data, std::min(bytes, record.data_bytes));
  if (bytes > record.data_bytes) memset(at + record.data_bytes, 0xa5, bytes - record.data_bytes);
  buffer.complete_ns = std::max(buffer.complete_ns, record.end_ns);
  if (record.end_offset != 0) {
    buffer.pending.push_back({buffer.used + record.start_offset, buffer.used + record.end_offset,
                              record.start_ns, record.end_ns});
  }
  buffer.used += bytes;
  ++buffer.records;
}

// A forced flush takes what still runs as it is.
void ClearUnfinished(Buffer& buffer) {
  uint64_t now = Machine()->device_clock_ns();
  uint64_t none = 0;
  for (const Pending& pending : buffer.pending) {
    if (pending.end_ns <= now) continue;
    memcpy(buffer.data + pending.end_at, &none, sizeof none);
    if (pending.start_ns > now) memcpy(buffer.data + pending.start_at, &none, sizeof none);
  }
  buffer.complete_ns = 0;
}

void FlushLane(Lane& lane, bool forced) {
  std::lock_guard lock(lane.mutex);
  Buffer* buffer = lane.current;
  if (buffer == nullptr) return;
  bool complete = buffer->complete_ns <= Machine()->device_clock_ns();
  if (!forced && (buffer->records == 0 || !complete)) return;
  if (forced) ClearUnfinished(*buffer);
  Enqueue(buffer);
  lane.current = nullptr;
}

// Whether a complete buffer handed over up to this ticket is still to be delivered. Under `mutex`.
bool AnyOwed(const Buffers& buffers, uint64_t ticket) {
  if (buffers.delivering != 0 && buffers.delivering <= ticket) return true;
  uint64_t now = Machine()->device_clock_ns();
  return std::any_of(buffers.waiting.begin(), buffers.waiting.end(), [&](const Buffer* buffer) {
    return buffer->ticket <= ticket && buffer->complete_ns <= now;
  });
}

}  // namespace

void WriteRecord(const Record& wanted) {
  Buffers& buffers = TheBuffers();
  Misbehaviour twist(wanted);
  if (twist.drops()) {
    if (twist.counts_drop()) buffers.dropped.fetch_add(1);
    return;
  }
  const Record& record = twist.record();
  size_t bytes = RecordSize(record.kind);
  if (bytes == 0) return;
  const bool by_worker = Script().worker_records && record.end_offset != 0;
  Lane& lane = by_worker ? LaneOfOwnThread() : LaneOfThisThread();
  for (int attempt = 0; attempt < 8; ++attempt) {
    {
      std::lock_guard lock(lane.mutex);
      if (lane.current != nullptr && HasRoom(*lane.current, bytes)) {
        Append(*lane.current, record, bytes);
        return;
      }
      if (lane.current != nullptr) Enqueue(lane.current);
      lane.current = nullptr;
    }
    Buffer* fresh = by_worker ? RequestBufferOnOwnThread() : RequestBuffer();
    if (fresh == nullptr || !HasRoom(*fresh, bytes)) {
      if (fresh != nullptr) Enqueue(fresh);
      break;
    }
    std::lock_guard lock(lane.mutex);
    // Another thread of a shared lane was faster: its buffer first, ours goes back empty.
    if (lane.current != nullptr) {
      Enqueue(fresh);
    } else {
      lane.current = fresh;
    }
  }
  buffers.dropped.fetch_add(1);
}

void SetBufferCallbacks(CUpti_BuffersCallbackRequestFunc request,
                        CUpti_BuffersCallbackCompleteFunc complete) {
  TheBuffers().request.store(request);
  TheBuffers().complete.store(complete);
}

bool HaveBufferCallbacks() { return TheBuffers().request.load() != nullptr; }
void SetPerThreadBuffers(bool per_thread) { TheBuffers().per_thread.store(per_thread); }
bool PerThreadBuffers() { return TheBuffers().per_thread.load(); }
void SetBuffersZeroed(bool zeroed) { TheBuffers().zeroed.store(zeroed); }
bool BuffersZeroed() { return TheBuffers().zeroed.load(); }
size_t TakeDroppedRecords() { return TheBuffers().dropped.exchange(0); }

void SetFlushPeriod(uint32_t period_ms) {
  std::lock_guard lock(TheBuffers().mutex);
  TheBuffers().period_ms = period_ms;
}

void FlushBuffers(bool forced) {
  Buffers& buffers = TheBuffers();
  FlushLane(buffers.shared, forced);
  {
    std::lock_guard lock(buffers.lanes_mutex);
    for (Lane* lane : buffers.lanes) FlushLane(*lane, forced);
  }
  std::unique_lock lock(buffers.mutex);
  if (forced) {
    for (Buffer* buffer : buffers.waiting) ClearUnfinished(*buffer);
  }
  buffers.changed.notify_all();
  if (Script().late_us != 0) return;
  uint64_t ticket = buffers.last_ticket;
  buffers.changed.wait(lock, [&] { return !AnyOwed(buffers, ticket); });
}

}  // namespace ranktap::standin
