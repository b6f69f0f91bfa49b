// One thread's ring, and the only way an event gets into it.
//
//   if (!Capturing(kCaptureRanges)) return;
//   ThreadState* thread = ThreadState::Current();
//   if (thread == nullptr) return ThreadStates::LoseWithoutWriter();
//   const ReentryGuard guard(*thread);
//   if (!guard.entered()) return thread->Lose(Loss::kNested);
//   thread->Emit(RangePopEvent{.time_ticks = NowTicks(), .domain = domain});
//
// Runs on: the thread the state belongs to.  May not: allocate, lock, log, make a system call; but
// for the first event of a thread (Attach) and a new chunk every 256 KiB.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "agent/core/capture_state.h"
#include "agent/core/segment.h"
#include "proto/events.h"
#include "proto/loss.h"
#include "proto/ring.h"

namespace ranktap::agent {

class ThreadState {
 public:
  // This thread's state, made at its first event; nullptr when there are more threads than slots.
  static ThreadState* Current() {
    if (current_ > kNoSlot) [[likely]]
      return reinterpret_cast<ThreadState*>(current_);
    return current_ == kNoSlot ? nullptr : Attach(proto::WriterKind::kThread);
  }
  // The same, without making one: nullptr where this thread has made no event yet.
  static ThreadState* Existing() {
    return current_ > kNoSlot ? reinterpret_cast<ThreadState*>(current_) : nullptr;
  }
  // For threads of ours, before they emit.
  static ThreadState* Attach(proto::WriterKind kind);

  // Appends an event; its header is filled in here. When there is no room the newest, this one, is
  // dropped whole and counted.
  template <typename Event>
  void Emit(const Event& event) {
    static_assert(proto::kIsEvent<Event>);
    Increment(slot_->produced);
    if (!HasRoom(sizeof(Event))) [[unlikely]]
      return CountUnplaced(sizeof(Event));
    auto* place = new (cursor_) Event(event);
    place->header = {.kind = static_cast<uint16_t>(Event::kKind),
                     .bytes = static_cast<uint16_t>(sizeof(Event)),
                     .text_bytes = 0,
                     .payload_bytes = 0};
    Commit(sizeof(Event));
  }

  // The same with what follows the event inline.
  template <typename Event>
  void EmitWith(const Event& event, std::span<const std::byte> text,
                std::span<const std::byte> payload) {
    Increment(slot_->produced);
    const size_t bytes = sizeof(Event) + Padded(text.size()) + Padded(payload.size());
    if (!HasRoom(bytes)) return CountUnplaced(bytes);
    auto* place = new (cursor_) Event(event);
    place->header = {.kind = static_cast<uint16_t>(Event::kKind),
                     .bytes = static_cast<uint16_t>(bytes),
                     .text_bytes = static_cast<uint16_t>(text.size()),
                     .payload_bytes = static_cast<uint16_t>(payload.size())};
    if (!text.empty()) std::memcpy(cursor_ + sizeof(Event), text.data(), text.size());
    if (!payload.empty()) {
      std::memcpy(cursor_ + sizeof(Event) + Padded(text.size()), payload.data(), payload.size());
    }
    Commit(bytes);
  }

  // As Emit, but `wait(attempt)` may wait for room before the event counts as lost; it returns
  // false to give up. For threads of ours only.
  template <typename Event, typename Wait>
  void EmitWaiting(const Event& event, Wait&& wait) {
    for (unsigned attempt = 0; !HasRoom(sizeof(Event)) && wait(attempt); ++attempt) {
    }
    Emit(event);
  }

  // `count` events were produced and are lost already.
  void Lose(proto::Loss loss, uint64_t count = 1) {
    Increment(slot_->produced, count);
    Increment(slot_->lost[static_cast<size_t>(loss)], count);
  }

  // The CUDA call that this thread is inside of: what a drain after death reports as open.
  void OpenCall(uint64_t since_ticks, proto::ArenaRef api, uint32_t correlation) {
    slot_->open_since_ticks.store(since_ticks, std::memory_order_relaxed);
    slot_->open_correlation.store(correlation, std::memory_order_relaxed);
    slot_->open_api.store(api, std::memory_order_release);
  }
  void CloseCall() { slot_->open_api.store(0, std::memory_order_relaxed); }

  uint32_t writer() const { return slot_->id.load(std::memory_order_relaxed); }

  // Which name a string pointer stood for last. The caller compares the text again: a program may
  // reuse the memory.
  struct NameCacheLine {
    const char* pointer;
    const char* name;  // in the arena, NUL-terminated
    proto::ArenaRef ref;
  };
  NameCacheLine& NameCacheFor(const char* pointer) {
    const auto bits = reinterpret_cast<uintptr_t>(pointer);
    return name_cache_[(bits >> 4 ^ bits >> 10) % name_cache_.size()];
  }

  // What the guards and the sources keep for a thread, here so that all of it shares one TLS word.
  uint32_t guard_depth = 0;
  // Something lent to this thread; set to 0 when it ends.
  std::atomic<uint32_t>* lease = nullptr;
  uint32_t api_depth = 0;  // CUDA calls we are inside of; the driver's below a runtime's is nested
  uint32_t module_depth = 0;  // forwards of framework modules we are inside of
  uint32_t python_stack = 0;  // from where the interpreter's lock was given back; 0: not known
  std::atomic<uint32_t> last_correlation{0};  // of the calls recorded on this thread
  std::atomic<uint32_t> last_launch{0};
  // Events produced so far, by which 1 in 64 hooks is timed.
  uint64_t produced() const { return slot_->produced.load(std::memory_order_relaxed); }
  uint64_t sampled_callbacks = 0;
  uint64_t sampled_ticks = 0;
  uint64_t sampled_max_ticks = 0;

 private:
  friend class ThreadStates;

  static constexpr uintptr_t kNoState = 0;
  static constexpr uintptr_t kNoSlot = 1;
  static constexpr size_t kMaxEventBytes = 0xfff8;  // EventHeader::bytes

  static constexpr size_t Padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

  // Single writer: a load and a store, no locked instruction.
  static void Increment(std::atomic<uint64_t>& counter, uint64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  bool HasRoom(size_t bytes) {
    if (bytes <= static_cast<size_t>(limit_ - cursor_)) [[likely]]
      return true;
    return bytes <= kMaxEventBytes && TakeChunk();
  }
  bool TakeChunk();
  void CountUnplaced(size_t bytes);
  void Commit(size_t bytes) {
    cursor_ += bytes;
    committed_ += proto::PackCommitted(1, static_cast<uint32_t>(bytes));
    // Pairs with the acquire in the sender: the event's bytes are there before they count.
    chunk_->committed.store(committed_, std::memory_order_release);
  }

  // ThreadState* or one of the two constants. One word of TLS in all: static TLS space is scarce in
  // a library that is dlopened.
  static thread_local uintptr_t current_;

  std::byte* cursor_ = nullptr;
  std::byte* limit_ = nullptr;
  proto::Chunk* chunk_ = nullptr;
  proto::WriterSlot* slot_ = nullptr;
  uint64_t committed_ = 0;  // of the current chunk, packed
  std::array<NameCacheLine, 64> name_cache_{};
};

// Keeps our own CUDA, NVTX and allocator calls, and hooks that fire below a hook of ours, out of
// the trace.
class ReentryGuard {
 public:
  explicit ReentryGuard(ThreadState& thread) : thread_(thread) { ++thread_.guard_depth; }
  ~ReentryGuard() { --thread_.guard_depth; }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;

  bool entered() const { return thread_.guard_depth == 1; }

 private:
  ThreadState& thread_;
};

// All thread states of the process, one per writer slot, in memory that is mapped once and never
// freed.
class ThreadStates {
 public:
  // Before the first event. False: no memory.
  [[nodiscard]] static bool Create(Segment& segment);

  // For a thread without a slot: one event, counted on the shared one.
  static void LoseWithoutWriter(proto::Loss loss = proto::Loss::kNoWriter);

  // Sums over all writers since the start.
  struct OwnCost {
    uint64_t callbacks;          // events that the program's threads made
    uint64_t sampled_callbacks;  // hooks that were timed
    uint64_t callback_ticks;     // in all hooks, estimated from those
    uint64_t max_ticks;
  };
  static OwnCost SumOwnCost();

  // The highest correlation ids that live threads have recorded.
  struct LastCalls {
    uint32_t correlation, launch;
  };
  static LastCalls FindLastCalls();

 private:
  friend class ThreadState;
  static void OnThreadExit(void* state);
};

}  // namespace ranktap::agent
