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
#include <utility>
#include <vector>

#include "tests/fakes/cupti/client_clock.h"
#include "tests/fakes/cupti/layout.h"
#include "tests/fakes/cupti/misbehaviour.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/request_thread.h"
#include "tests/fakes/cupti/second_subscriber.h"
#include "tests/fakes/cupti/subscription.h"

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
  std::shared_ptr<const void> shapes;

  uint64_t DueNs() const { return std::max(complete_ns, late_until_ns); }
  std::vector<Pending> pending;
};

// Where a thread's records go. `current` is taken out while the client is asked for a buffer.
struct Lane {
  std::mutex mutex;
  Buffer* current = nullptr;
};

}  // namespace

struct BufferSet {
  std::atomic<CUpti_BuffersCallbackRequestFunc> request{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> complete{nullptr};
  // Of a subscriber of the second API: instead of these two.
  std::atomic<const SecondCallbacks*> second{nullptr};
  std::atomic<bool> per_thread{true};  // the default from 13.0 on
  std::atomic<bool> zeroed{false};
  std::atomic<size_t> dropped{0};

  std::mutex lanes_mutex;
  std::set<Lane*> lanes;
  Lane shared;
  Lane* of_worker = nullptr;  // under lanes_mutex

  std::mutex mutex;  // of everything below
  std::condition_variable changed;
  std::deque<Buffer*> waiting;  // full, or flushed
  uint64_t last_ticket = 0;
  uint64_t delivering = 0;  // the ticket of the buffer that is with the client now; 0: none
  bool worker_started = false;
  uint32_t period_ms = 0;
};

BufferSet& FirstApiBuffers() {
  static BufferSet* buffers = new BufferSet;
  return *buffers;
}

namespace {

struct AllSets {
  std::mutex mutex;
  std::vector<BufferSet*> sets{&FirstApiBuffers()};  // none ever goes
};

AllSets& TheSets() {
  static AllSets* all = new AllSets;
  return *all;
}

std::vector<BufferSet*> EverySet() {
  std::lock_guard lock(TheSets().mutex);
  return TheSets().sets;
}

void Enqueue(BufferSet& buffers, Buffer* buffer);

// Gives the thread's buffers back when the thread ends.
struct ThreadLanes {
  std::vector<std::pair<BufferSet*, Lane*>> mine;
  ~ThreadLanes() {
    for (auto& [buffers, lane] : mine) {
      std::lock_guard lanes_lock(buffers->lanes_mutex);
      std::lock_guard lock(lane->mutex);
      if (lane->current != nullptr) Enqueue(*buffers, lane->current);
      lane->current = nullptr;
      buffers->lanes.erase(lane);
      // The lane itself stays: a flush may just have copied its address.
    }
  }
};

Lane& LaneOfThisThread(BufferSet& buffers) {
  if (!buffers.per_thread.load(std::memory_order_relaxed)) return buffers.shared;
  static thread_local ThreadLanes lanes;
  for (auto& [set, lane] : lanes.mine) {
    if (set == &buffers) return *lane;
  }
  // Reachable for good, so that a leak checker of the program's does not find those of ended
  // threads.
  static std::deque<Lane>& every = *new std::deque<Lane>;
  static std::mutex every_mutex;
  Lane* const lane = [] {
    std::lock_guard lock(every_mutex);
    return &every.emplace_back();
  }();
  lanes.mine.emplace_back(&buffers, lane);
  std::lock_guard lock(buffers.lanes_mutex);
  buffers.lanes.insert(lane);
  return *lane;
}

void Deliver(BufferSet& buffers, Buffer* buffer) {
  Machine()->enter_tool_callback(1);
  if (const SecondCallbacks* second = buffers.second.load()) {
    second->Complete(buffer->data, buffer->bytes, buffer->used, buffer->shapes);
  } else if (CUpti_BuffersCallbackCompleteFunc complete = buffers.complete.load()) {
    PutIntoClientClock(buffer->data, buffer->used);
    complete(nullptr, 0, buffer->data, buffer->bytes, buffer->used);
  }
  Machine()->enter_tool_callback(-1);
  delete buffer;
}

// The next buffer whose records are complete; null, and the moment to look again, where there is
// none. Under `mutex`.
Buffer* TakeComplete(BufferSet& buffers, uint64_t* next_ns) {
  std::deque<Buffer*>& waiting = buffers.waiting;
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

void RunWorker(BufferSet& buffers) {
  pthread_setname_np(pthread_self(), "cupti-worker");
  std::unique_lock lock(buffers.mutex);
  for (;;) {
    uint64_t next_ns;
    Buffer* buffer = TakeComplete(buffers, &next_ns);
    if (buffer == nullptr) {
      uint64_t nap_ns = std::min<uint64_t>(next_ns, 1'000'000'000);
      buffers.changed.wait_for(lock, std::chrono::nanoseconds(nap_ns));
      continue;
    }
    buffers.delivering = buffer->ticket;
    lock.unlock();
    Deliver(buffers, buffer);
    lock.lock();
    buffers.delivering = 0;
    buffers.changed.notify_all();
  }
}

// Under `mutex`.
void StartWorker(BufferSet& buffers) {
  if (buffers.worker_started) return;
  buffers.worker_started = true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([&buffers] { RunWorker(buffers); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Enqueue(BufferSet& buffers, Buffer* buffer) {
  std::lock_guard lock(buffers.mutex);
  StartWorker(buffers);
  if (const SecondCallbacks* second = buffers.second.load()) buffer->shapes = second->Shapes();
  buffer->ticket = ++buffers.last_ticket;
  buffer->late_until_ns = Machine()->device_clock_ns() + Script().late_us * 1000;
  buffers.waiting.push_back(buffer);
  buffers.changed.notify_all();
}

// The client's own function, on the thread that needs a buffer, with no lock of ours held.
Buffer* RequestBuffer(BufferSet& buffers) {
  CUpti_BuffersCallbackRequestFunc request = buffers.request.load();
  const SecondCallbacks* second = buffers.second.load();
  if (request == nullptr && second == nullptr) return nullptr;
  Buffer* buffer = new Buffer;
  size_t most = 0;
  RaiseWithinRequest();
  Machine()->enter_tool_callback(1);
  if (second != nullptr) {
    second->Request(&buffer->data, &buffer->bytes, &most);
  } else {
    request(&buffer->data, &buffer->bytes, &most);
  }
  Machine()->enter_tool_callback(-1);
  if (most != 0) buffer->most_records = most;
  if (buffer->data == nullptr || buffer->bytes == 0) {
    delete buffer;
    return nullptr;
  }
  if (!buffers.zeroed.load()) memset(buffer->data, 0, buffer->bytes);
  return buffer;
}

Buffer* RequestBufferOnOwnThread(BufferSet& buffers) {
  struct Request {
    BufferSet& buffers;
    Buffer* fresh = nullptr;
  } request{buffers};
  AskOnOwnThread(
      [](void* argument) {
        auto* wanted = static_cast<Request*>(argument);
        wanted->fresh = RequestBuffer(wanted->buffers);
      },
      &request);
  return request.fresh;
}

Lane& LaneOfOwnThread(BufferSet& buffers) {
  std::lock_guard lock(buffers.lanes_mutex);
  if (buffers.of_worker == nullptr) buffers.of_worker = *buffers.lanes.insert(new Lane).first;
  return *buffers.of_worker;
}

bool HasRoom(const Buffer& buffer, size_t bytes) {
  return buffer.used + bytes <= buffer.bytes && buffer.records < buffer.most_records;
}

void CheckZeroed(const BufferSet& buffers, const uint8_t* at, size_t bytes) {
  if (!buffers.zeroed.load(std::memory_order_relaxed)) return;
  if (std::any_of(at, at + bytes, [](uint8_t byte) { return byte != 0; })) {
    Machine()->note_violation("activity buffer not zeroed, though the client said it would be");
  }
}

void Append(const BufferSet& buffers, Buffer& buffer, const Record& record, size_t bytes) {
  uint8_t* at = buffer.data + buffer.used;
  CheckZeroed(buffers, at, bytes);
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

void FlushLane(BufferSet& buffers, Lane& lane, bool forced) {
  std::lock_guard lock(lane.mutex);
  Buffer* buffer = lane.current;
  if (buffer == nullptr) return;
  bool complete = buffer->complete_ns <= Machine()->device_clock_ns();
  if (!forced && (buffer->records == 0 || !complete)) return;
  if (forced) ClearUnfinished(*buffer);
  Enqueue(buffers, buffer);
  lane.current = nullptr;
}

// Whether a complete buffer handed over up to this ticket is still to be delivered. Under `mutex`.
bool AnyOwed(const BufferSet& buffers, uint64_t ticket) {
  if (buffers.delivering != 0 && buffers.delivering <= ticket) return true;
  uint64_t now = Machine()->device_clock_ns();
  return std::any_of(buffers.waiting.begin(), buffers.waiting.end(), [&](const Buffer* buffer) {
    return buffer->ticket <= ticket && buffer->complete_ns <= now;
  });
}

void FlushSet(BufferSet& buffers, bool forced) {
  FlushLane(buffers, buffers.shared, forced);
  {
    std::lock_guard lock(buffers.lanes_mutex);
    for (Lane* lane : buffers.lanes) FlushLane(buffers, *lane, forced);
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

}  // namespace

BufferSet& NewBufferSet() {
  auto* set = new BufferSet;
  std::lock_guard lock(TheSets().mutex);
  TheSets().sets.push_back(set);
  return *set;
}

void WriteRecord(const Record& wanted) {
  Misbehaviour twist(wanted);
  const Record& record = twist.record();
  if (TheSubscription().second_api.load(std::memory_order_relaxed)) {
    return WriteForSecondApi(record, twist);
  }
  if (twist.drops()) {
    if (twist.counts_drop()) CountDropped(FirstApiBuffers());
    return;
  }
  if (size_t bytes = RecordSize(record.kind)) WriteInto(FirstApiBuffers(), record, bytes);
}

void WriteInto(BufferSet& buffers, const Record& record, size_t bytes) {
  const bool by_worker = Script().worker_records && record.end_offset != 0;
  Lane& lane = by_worker ? LaneOfOwnThread(buffers) : LaneOfThisThread(buffers);
  for (int attempt = 0; attempt < 8; ++attempt) {
    {
      std::lock_guard lock(lane.mutex);
      if (lane.current != nullptr && HasRoom(*lane.current, bytes)) {
        Append(buffers, *lane.current, record, bytes);
        return;
      }
      if (lane.current != nullptr) Enqueue(buffers, lane.current);
      lane.current = nullptr;
    }
    Buffer* fresh = by_worker ? RequestBufferOnOwnThread(buffers) : RequestBuffer(buffers);
    if (fresh == nullptr || !HasRoom(*fresh, bytes)) {
      if (fresh != nullptr) Enqueue(buffers, fresh);
      break;
    }
    std::lock_guard lock(lane.mutex);
    // Another thread of a shared lane was faster: its buffer first, ours goes back empty.
    if (lane.current != nullptr) {
      Enqueue(buffers, fresh);
    } else {
      lane.current = fresh;
    }
  }
  CountDropped(buffers);
}

void SetBufferCallbacks(CUpti_BuffersCallbackRequestFunc request,
                        CUpti_BuffersCallbackCompleteFunc complete) {
  FirstApiBuffers().request.store(request);
  FirstApiBuffers().complete.store(complete);
}

void SetBufferCallbacks(BufferSet& buffers, const SecondCallbacks* callbacks) {
  buffers.second.store(callbacks);
}

bool HaveBufferCallbacks() {
  return FirstApiBuffers().request.load() != nullptr || TheSubscription().second_api.load();
}
void SetPerThreadBuffers(BufferSet& buffers, bool per_thread) {
  buffers.per_thread.store(per_thread);
}
void SetBuffersZeroed(BufferSet& buffers, bool zeroed) { buffers.zeroed.store(zeroed); }
void CountDropped(BufferSet& buffers) { buffers.dropped.fetch_add(1); }
size_t TakeDroppedRecords(BufferSet& buffers) { return buffers.dropped.exchange(0); }

void SetFlushPeriod(uint32_t period_ms) {
  std::lock_guard lock(FirstApiBuffers().mutex);
  FirstApiBuffers().period_ms = period_ms;
}

void FlushBuffers(bool forced) {
  for (BufferSet* buffers : EverySet()) FlushSet(*buffers, forced);
}

void DiscardBuffers(BufferSet& buffers) {
  std::vector<Lane*> lanes{&buffers.shared};
  {
    std::lock_guard lock(buffers.lanes_mutex);
    lanes.insert(lanes.end(), buffers.lanes.begin(), buffers.lanes.end());
  }
  for (Lane* lane : lanes) {
    std::lock_guard lock(lane->mutex);
    delete std::exchange(lane->current, nullptr);
  }
  std::unique_lock lock(buffers.mutex);
  for (Buffer* buffer : buffers.waiting) delete buffer;
  buffers.waiting.clear();
  buffers.changed.wait(lock, [&] { return buffers.delivering == 0; });
}

}  // namespace ranktap::standin
