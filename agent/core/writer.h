// One thread's ring, and the only way an event gets into it.
//
//   if (!Capturing(kCaptureRanges)) return;
//   ThreadState* thread = ThreadState::Current();
//   if (thread == nullptr) return ThreadStates::LoseWithoutWriter();
//   thread->Emit(RangePopEvent{.time_ticks = NowTicks(), .domain = domain});
//
// A signal handler may interrupt any of this and emit itself, fork, or leave by longjmp; the thread
// may be cancelled. So what is under way has a mark, the stack pointer of the hook: whoever finds
// it from below is nested, and counted so; whoever finds it from above knows that the hook is gone
// for good, and puts in order what it left (writer_takeover.cc).
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
#include "agent/core/name_cache.h"
#include "agent/core/sanitizers.h"
#include "agent/core/segment.h"
#include "proto/events.h"
#include "proto/loss.h"
#include "proto/ring.h"

namespace ranktap::agent {

class ThreadState {
 public:
  // This thread's state, made at its first event; nullptr when there are more threads than slots.
  static ThreadState* Current() {
    const uintptr_t current = current_;  // once: each access is a call of the loader's
    if (current > kNoSlot) [[likely]]
      return reinterpret_cast<ThreadState*>(current);
    return current == kNoSlot ? nullptr : Attach(proto::WriterKind::kThread);
  }
  // The same, without making one: nullptr where this thread has made no event yet.
  static ThreadState* Existing() {
    const uintptr_t current = current_;
    return current > kNoSlot ? reinterpret_cast<ThreadState*>(current) : nullptr;
  }
  // For threads of ours, before they emit.
  static ThreadState* Attach(proto::WriterKind kind);

  // Appends an event; its header is filled in here. When there is no room the newest, this one, is
  // dropped whole and counted.
  // Always inline: a call costs a range 5 %. The members go from registers into the ring, as long
  // as nobody takes the event's address: an event put together in memory is read back in larger
  // pieces than it was written in, and the processor waits until the clock, read just before, has
  // retired (20 of 42 ns of a range).
  template <typename Event>
  [[gnu::always_inline]] void Emit(const Event& event) {
    static_assert(proto::kIsEvent<Event>);
    const uintptr_t here = StackPointer();
    if (!Begin(here)) [[unlikely]]
      return;
    if (!HasRoom(sizeof(Event))) [[unlikely]]
      return CountUnplaced(sizeof(Event));
    Place(event);
    Commit(here, sizeof(Event));
  }

  // Emit where there is nothing to do but to write: false, and nothing is done, where the thread is
  // in the middle of an event or its chunk is full. There is no call in it (TicksAreTsc).
  template <typename Event>
  [[nodiscard, gnu::always_inline]] bool TryEmit(const Event& event) {
    const uintptr_t here = StackPointer();
    if (IsBusy()) [[unlikely]]
      return false;
    SetBusy(here);
    if (sizeof(Event) > static_cast<size_t>(limit_ - cursor_)) [[unlikely]] {
      SetBusy(0);
      return false;
    }
    Add(slot_->produced, 1);
    Place(event);
    Commit(here, sizeof(Event));
    return true;
  }

  // The same with what follows the event inline. By value, for the sake of callers that also Emit.
  template <typename Event>
  [[gnu::noinline]] void EmitWith(Event event, std::span<const std::byte> text,
                                  std::span<const std::byte> payload) {
    const uintptr_t here = StackPointer();
    if (!Begin(here)) return;
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
    Commit(here, bytes);
  }

  // As Emit, but `wait(attempt)` may wait for room before the event counts as lost; it returns
  // false to give up. For threads of ours only.
  template <typename Event, typename Wait>
  void EmitWaiting(const Event& event, Wait&& wait) {
    for (unsigned attempt = 0; !MakeRoom(sizeof(Event)) && wait(attempt); ++attempt) {
    }
    Emit(event);
  }

  // `count` events were produced and are lost already.
  void Lose(proto::Loss loss, uint64_t count = 1) {
    const bool is_outermost = !IsBusy();
    if (is_outermost) SetBusy(StackPointer());
    Add(slot_->produced, count);
    Add(slot_->lost[static_cast<size_t>(loss)], count);
    if (is_outermost) SetBusy(0);
  }

  // A kernel, a copy or the like has ended on a device, whatever becomes of its event.
  void CountEndedWork() { Add(slot_->work_ended, 1); }

  // The CUDA call that this thread is inside of: what a drain after death reports as open.
  void OpenCall(uint64_t since_ticks, proto::ArenaRef api, uint32_t correlation) {
    slot_->open_since_ticks.store(since_ticks, std::memory_order_relaxed);
    slot_->open_correlation.store(correlation, std::memory_order_relaxed);
    slot_->open_api.store(api, std::memory_order_release);
  }
  bool IsInside(proto::ArenaRef api) const {
    return slot_->open_api.load(std::memory_order_relaxed) == api;
  }
  // Of the open call.
  uint64_t open_since() const { return slot_->open_since_ticks.load(std::memory_order_relaxed); }
  void CloseCall() { slot_->open_api.store(0, std::memory_order_relaxed); }

  uint32_t writer() const { return slot_->id.load(std::memory_order_relaxed); }

  // A hook of ours is at work further up this thread's stack, in calls of its own (ReentryGuard).
  // One that was left by longjmp does not count. An event that is emitted all the same is lost as
  // nested, except on a thread of ours.
  bool IsGuarded() {
    const uintptr_t guard = guard_;
    return HasGuard() && (guard == kForGood || IsBelow(guard, StackPointer()));
  }
  // True also where the hook was left by longjmp. No call in it.
  bool HasGuard() const { return guard_ != 0; }
  // For threads of ours: what fires on them is never the program's.
  void GuardForGood() { guard_ = kForGood; }

  // The sources' values for a thread, here so that all of it shares one TLS word. Something lent to
  // this thread; set to 0 when it ends.
  std::atomic<uint32_t>* lease = nullptr;
  uint32_t api_depth = 0;  // CUDA calls we are inside of; the driver's below a runtime's is nested
  uint32_t api_epoch = 0;  // the time of capture that api_depth was counted in
  uint32_t module_depth = 0;  // forwards of framework modules we are inside of
  uint32_t python_stack = 0;  // from where the interpreter's lock was given back; 0: not known
  std::atomic<uint32_t> last_correlation{0};  // of the calls recorded on this thread
  std::atomic<uint32_t> last_launch{0};       // of those that a record stands for
  // Calls that made a kernel: not those that CUDA refused or put into a graph.
  std::atomic<uint64_t> launches{0}, graph_launches{0};
  uint64_t last_node_ticks = 0;    // when a call on this thread made a node of a graph
  std::atomic<uint64_t> polls{0};  // queries that found work not done: no events
  uint64_t produced() const { return slot_->produced.load(std::memory_order_relaxed); }
  // Events and polls so far, by which 1 in 64 hooks is timed.
  uint64_t hooked() const { return produced() + polls.load(std::memory_order_relaxed); }
  uint64_t sampled_callbacks = 0;
  uint64_t sampled_ticks = 0;
  uint64_t sampled_max_ticks = 0;

 private:
  friend class ThreadStates;
  friend class ReentryGuard;

  static constexpr uintptr_t kForGood = UINTPTR_MAX;
  static constexpr uintptr_t kNoState = 0;
  static constexpr uintptr_t kNoSlot = 1;
  static constexpr size_t kMaxEventBytes = 0xfff8;  // EventHeader::bytes

  static constexpr size_t Padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

  // One writer, but a signal handler may interrupt it to count as well: one instruction, which
  // needs no lock for that. Between the test for a fork (InOwnProcess) and it lies nothing.
  // ThreadSanitizer does not see that it releases what was written before.
  static void Add(std::atomic<uint64_t>& counter, uint64_t by) {
#if defined(__x86_64__) && !defined(RANKTAP_UNDER_TSAN)
    asm volatile(
        "cmpl $0, %2\n\t"
        "je 1f\n\t"
        "addq %1, %0\n"
        "1:"
        : "+m"(counter)
        : "er"(by), "m"(g_capture_page.load(std::memory_order_relaxed)->unforked)
        : "cc", "memory");
#else
    if (InOwnProcess()) counter.fetch_add(by, std::memory_order_release);
#endif
  }

  static uintptr_t StackPointer() {
#if defined(__x86_64__)
    uintptr_t here;
    asm volatile("movq %%rsp, %0" : "=r"(here));
    return here;
#else
    return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
#endif
  }

  bool IsBusy() const { return busy_.load(std::memory_order_relaxed) != 0; }
  void SetBusy(uintptr_t here) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    busy_.store(here, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // Counts the event, which is then placed or lost. False: it is not to be placed, all is done.
  bool Begin(uintptr_t here) {
    if (IsBusy() && !TakeOver(here)) [[unlikely]]
      return false;
    SetBusy(here);
    Add(slot_->produced, 1);
    return true;
  }
  // Whether `here` is further down than the frame with the stack pointer `frame`, or in a handler
  // that interrupted it from a stack of its own: that frame is alive.
  static bool IsBelow(uintptr_t frame, uintptr_t here);
  // Decides about a mark: false when the event is lost to the hook that is at work. True when that
  // hook is gone.
  bool TakeOver(uintptr_t here);
  // Ends the work that a hook left half done when it was cut off.
  void PutInOrder();
  bool MakeRoom(size_t bytes);

  bool HasRoom(size_t bytes) {
    if (bytes <= static_cast<size_t>(limit_ - cursor_)) [[likely]]
      return true;
    return bytes <= kMaxEventBytes && TakeChunk(bytes);
  }
  template <typename Event>
  [[gnu::always_inline]] void Place(const Event& event) {
    // The sender's core read this memory last. To ask for it some events ahead takes 5 ns of 37 off
    // a range. An address behind the ring's end does not fault.
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(cursor_[512]));
#else
    __builtin_prefetch(cursor_ + 512, 1);
#endif
    auto* place = new (cursor_) Event(event);
    place->header = {.kind = static_cast<uint16_t>(Event::kKind),
                     .bytes = static_cast<uint16_t>(sizeof(Event)),
                     .text_bytes = 0,
                     .payload_bytes = 0};
  }
  static ThreadState* AttachUndisturbed(proto::WriterKind kind);
  bool TakeChunk(size_t bytes);
  void GoOnInChunk();
  bool IsBefore(const proto::Chunk& previous, const proto::Chunk& chunk) const;
  void CountUnplaced(size_t bytes);
  void Commit(uintptr_t here, size_t bytes) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Else a handler took the hook for gone, and has counted the event as interrupted.
    if (busy_.load(std::memory_order_relaxed) != here) [[unlikely]]
      return;
    cursor_ += bytes;
    // x86 keeps stores in order, as release does: the event's bytes are there before they count.
    // Pairs with the acquire in the sender.
    Add(chunk_->committed, proto::PackCommitted(1, static_cast<uint32_t>(bytes)));
    SetBusy(0);
  }

  // ThreadState* or one of the two constants. One word of TLS in all: static TLS space is scarce in
  // a library that is dlopened.
  // constinit here too: else each access asks whether it is initialised.
  static constinit thread_local uintptr_t current_;

  // The stack pointer of the hook that is at an event; 0: none.
  std::atomic<uintptr_t> busy_{0};
  uintptr_t guard_ = 0;  // the same of a ReentryGuard
  uint32_t nested_in_a_row_ = 0;
  uint64_t nested_at_ = 0;  // how many events were not nested when they began
  std::byte* cursor_ = nullptr;
  std::byte* limit_ = nullptr;
  proto::Chunk* chunk_ = nullptr;
  proto::WriterSlot* slot_ = nullptr;
  uint64_t first_event_ = 0;  // of the current chunk
  // The chunk before it, and while TakeChunk is at it the one that it has, until it is linked.
  proto::Chunk* pending_ = nullptr;
  proto::Chunk* previous_ = nullptr;

 public:
  NameCache names;  // last: it is the largest by far
};

// Keeps our own CUDA, NVTX and allocator calls, and hooks that fire below a hook of ours, out of
// the trace.
class ReentryGuard {
 public:
  explicit ReentryGuard(ThreadState& thread) : thread_(thread), entered_(!thread.IsGuarded()) {
    if (!entered_) return;
    thread_.guard_ = ThreadState::StackPointer();
    thread_.SetBusy(thread_.guard_);
  }
  ~ReentryGuard() {
    if (!entered_) return;
    thread_.guard_ = 0;
    thread_.SetBusy(0);
  }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;

  bool entered() const { return entered_; }

 private:
  ThreadState& thread_;
  const bool entered_;
};

// All thread states of the process, one per writer slot, in memory that is mapped once and never
// freed.
class ThreadStates {
 public:
  // Before the first event. False: no memory.
  [[nodiscard]] static bool Create(Segment& segment);

  // For a thread without a slot: one event, counted on the shared one.
  static void LoseWithoutWriter(proto::Loss loss = proto::Loss::kNoWriter, uint64_t count = 1);

  // Sums over all writers since the start.
  struct OwnCost {
    uint64_t callbacks;          // events that the program's threads made
    uint64_t polls;              // counted instead of made into events
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
  // All threads' launches since the start.
  struct Launches {
    uint64_t kernels, graphs;
  };
  static Launches CountLaunches();

 private:
  friend class ThreadState;
  static void OnThreadExit(void* state);
};

}  // namespace ranktap::agent
