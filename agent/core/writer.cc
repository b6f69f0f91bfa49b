// The slow paths of writer.h: a thread's first event, a new chunk, a thread's end.
// Runs on: user threads, the drain thread.  May not: block. Attach makes two system calls
// (gettid, the thread's name), and pthread_setspecific may allocate, once a thread.
#include "agent/core/writer.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

namespace ranktap::agent {

using proto::Chunk;
using proto::Loss;
using proto::WriterKind;
using proto::WriterSlot;
using proto::WriterState;

namespace {

// Set once by Create, before the first event; never destroyed.
Segment* g_segment = nullptr;
ThreadState* g_states = nullptr;  // kMaxWriterSlots of them, by slot; [0] is not used
pthread_key_t g_exit_key;
struct {
  std::atomic<uint64_t> callbacks, sampled_callbacks, callback_ticks, launches, graph_launches,
      polls;
} g_ended_cost;

// The ticks of one thread. We timed the hooks of every 64th event or poll, from the first on: both
// hooks of a call that has one for entering and one for leaving.
uint64_t EstimateTicks(uint64_t sampled_ticks, uint64_t hooked) {
  if (hooked == 0) return 0;
  const uint64_t sampled = (hooked - 1) / 64 + 1;
  // In whole numbers: the program may trap inexact results, and a thread of its ends here.
  return static_cast<uint64_t>(static_cast<unsigned __int128>(sampled_ticks) * hooked / sampled);
}

}  // namespace

constinit thread_local uintptr_t ThreadState::current_ = ThreadState::kNoState;

bool ThreadStates::Create(Segment& segment) {
  static_assert(std::is_trivially_destructible_v<ThreadState>);
  constexpr size_t kBytes = sizeof(ThreadState) * proto::kMaxWriterSlots;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  if (pthread_key_create(&g_exit_key, &OnThreadExit) != 0) {
    munmap(memory, kBytes);
    return false;
  }
  g_segment = &segment;
  g_states = static_cast<ThreadState*>(memory);
  return true;
}

ThreadState* ThreadState::Attach(WriterKind kind) {
  // Cancelled in the middle, the thread would leave the allocator locked.
  int cancellation = 0;
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancellation);
  ThreadState* const state = AttachUndisturbed(kind);
  pthread_setcanceltype(cancellation, nullptr);
  return state;
}

ThreadState* ThreadState::AttachUndisturbed(WriterKind kind) {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  WriterSlot* slot = g_segment->AcquireSlot(kind, static_cast<int32_t>(gettid()), name);
  if (slot == nullptr) {
    current_ = kNoSlot;
    return nullptr;
  }
  auto* state = new (&g_states[slot - &g_segment->slot(0)]) ThreadState;
  state->slot_ = slot;
  if (current_ > kNoSlot) {
    // A signal handler attached this thread meanwhile.
    slot->state.store(static_cast<uint32_t>(WriterState::kEnded), std::memory_order_release);
    return reinterpret_cast<ThreadState*>(current_);
  }
  current_ = reinterpret_cast<uintptr_t>(state);
  // A thread-local's destructor may still emit after OnThreadExit: it attaches anew, and setting
  // the key again earns that slot its own OnThreadExit.
  pthread_setspecific(g_exit_key, state);
  return state;
}

void ThreadStates::OnThreadExit(void* ended) {
  if (!Capturing(kCaptureAlive)) return;  // in a fork child the slots are the parent's
  auto* state = static_cast<ThreadState*>(ended);
  ThreadState::current_ = ThreadState::kNoState;
  // Cancelled in a hook.
  if (state->IsBusy()) state->PutInOrder();
  // The sums of threads that are gone: the slot's next thread starts at 0.
  if (state->slot_->kind != static_cast<uint32_t>(WriterKind::kDrain)) {
    g_ended_cost.callbacks.fetch_add(state->produced());
  }
  g_ended_cost.sampled_callbacks.fetch_add(std::exchange(state->sampled_callbacks, 0));
  g_ended_cost.callback_ticks.fetch_add(
      EstimateTicks(std::exchange(state->sampled_ticks, 0), state->hooked()));
  g_ended_cost.launches.fetch_add(state->launches.exchange(0));
  g_ended_cost.graph_launches.fetch_add(state->graph_launches.exchange(0));
  g_ended_cost.polls.fetch_add(state->polls.exchange(0));
  if (state->lease != nullptr) state->lease->store(0, std::memory_order_release);
  state->lease = nullptr;
  if (state->chunk_ != nullptr) g_segment->CloseChunk(*state->chunk_);
  state->slot_->state.store(static_cast<uint32_t>(WriterState::kEnded), std::memory_order_release);
}

void ThreadStates::LoseWithoutWriter(Loss loss, uint64_t count) {
  if (!InOwnProcess()) return;
  WriterSlot& shared = g_segment->shared_slot();
  shared.produced.fetch_add(count, std::memory_order_relaxed);
  shared.lost[static_cast<size_t>(loss)].fetch_add(count, std::memory_order_relaxed);
}

ThreadStates::OwnCost ThreadStates::SumOwnCost() {
  // Read without synchronisation: each counter has one writer, and the sum is an estimate.
  OwnCost cost{.callbacks = g_ended_cost.callbacks,
               .polls = g_ended_cost.polls,
               .sampled_callbacks = g_ended_cost.sampled_callbacks,
               .callback_ticks = g_ended_cost.callback_ticks,
               .max_ticks = 0};
  const uint32_t used = g_segment->slots_used();
  for (uint32_t i = 1; i < used; ++i) {
    const ThreadState& state = g_states[i];
    const bool is_live =
        state.slot_ != nullptr && state.slot_->state.load(std::memory_order_relaxed) ==
                                      static_cast<uint32_t>(WriterState::kLive);
    // The drain thread's events come from CUPTI's records: the program did not call.
    if (is_live && state.slot_->kind != static_cast<uint32_t>(WriterKind::kDrain)) {
      cost.callbacks += state.produced();
      cost.callback_ticks += EstimateTicks(state.sampled_ticks, state.hooked());
    }
    cost.polls += state.polls.load(std::memory_order_relaxed);
    cost.sampled_callbacks += state.sampled_callbacks;
    cost.max_ticks = std::max(cost.max_ticks, state.sampled_max_ticks);
  }
  return cost;
}

ThreadStates::LastCalls ThreadStates::FindLastCalls() {
  LastCalls last{};
  const uint32_t used = g_segment->slots_used();
  for (uint32_t i = 1; i < used; ++i) {
    const ThreadState& state = g_states[i];
    last.correlation = std::max(last.correlation, state.last_correlation.load());
    last.launch = std::max(last.launch, state.last_launch.load());
  }
  return last;
}

ThreadStates::Launches ThreadStates::CountLaunches() {
  Launches launches{.kernels = g_ended_cost.launches, .graphs = g_ended_cost.graph_launches};
  const uint32_t used = g_segment->slots_used();
  for (uint32_t i = 1; i < used; ++i) {
    launches.kernels += g_states[i].launches.load();
    launches.graphs += g_states[i].graph_launches.load();
  }
  return launches;
}

bool ThreadState::TakeChunk(size_t bytes) {
  if (!InOwnProcess()) return false;
  Segment::Wanted wanted{.writer = writer(), .least_bytes = static_cast<uint32_t>(bytes)};
  if (chunk_ != nullptr) {
    wanted.first_event =
        first_event_ + proto::CommittedEvents(chunk_->committed.load(std::memory_order_relaxed));
    wanted.ordinal = chunk_->ordinal + 1;
    const uint32_t blocks = g_segment->BlocksOf(g_segment->IndexOf(*chunk_));
    // The one before is not acknowledged yet: this thread is faster than that takes.
    const bool is_fast = previous_ != nullptr && IsBefore(*previous_, *chunk_);
    wanted.blocks = is_fast ? blocks * 4 : previous_ == nullptr ? blocks : blocks / 4;
  }
  Chunk* next = g_segment->LendChunk(wanted, pending_);
  if (next == nullptr) return false;
  previous_ = chunk_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  chunk_ = next;  // from here on PutInOrder would go on with it
  std::atomic_signal_fence(std::memory_order_seq_cst);
  GoOnInChunk();
  return true;
}

// A chunk that the sender has given to another since then has another writer.
bool ThreadState::IsBefore(const Chunk& previous, const Chunk& chunk) const {
  return previous.writer.load(std::memory_order_acquire) == writer() &&
         previous.ordinal + 1 == chunk.ordinal;
}

// Links the chunk taken last to the one before, where that is not done, and writes behind what is
// committed in it.
void ThreadState::GoOnInChunk() {
  if (pending_ != nullptr) {
    auto& link = previous_ == nullptr ? slot_->first_chunk : previous_->next;
    // In this order: a chunk that the sender has given to another since then has lost its writer
    // before its link.
    const bool is_linked = link.load(std::memory_order_acquire) != 0;
    const bool is_ours = previous_ == nullptr || IsBefore(*previous_, *chunk_);
    // Pairs with the acquire in the sender: after it, the old chunk grows no more.
    if (!is_linked && is_ours) {
      link.store(g_segment->IndexOf(*chunk_) + 1, std::memory_order_release);
      if (previous_ != nullptr) g_segment->CloseChunk(*previous_);
    }
    pending_ = nullptr;
  }
  const uint64_t committed = chunk_->committed.load(std::memory_order_relaxed);
  first_event_ = chunk_->first_event;
  const uint32_t capacity = g_segment->CapacityOf(*chunk_);
  cursor_ = chunk_->data() + std::min(proto::CommittedBytes(committed), capacity);
  limit_ = chunk_->data() + capacity;
}

// Only signal handlers come here, and who finds a hook that was cut off.
bool ThreadState::IsBelow(uintptr_t frame, uintptr_t here) {
  constexpr uintptr_t kSameStack = 1 << 20;
  if (here < frame && frame - here < kSameStack) return true;
  stack_t other{};
  if (sigaltstack(nullptr, &other) != 0) return here < frame;
  const auto start = reinterpret_cast<uintptr_t>(other.ss_sp);
  const bool we_are_there = (other.ss_flags & SS_ONSTACK) != 0;
  const bool it_is_there = frame - start < other.ss_size;
  return we_are_there == it_is_there ? here < frame : we_are_there;
}

bool ThreadState::TakeOver(uintptr_t here) {
  // The kernel puts a signal's frame between: nothing nested comes closer. A hook called again from
  // the same place may lie somewhat lower than the one that was cut off.
  constexpr uintptr_t kSignalFrame = 512;
  // A mark left behind from where nothing comes any more must not mute the thread.
  constexpr uint32_t kMostInARow = 64;
  const uintptr_t frame = busy_.load(std::memory_order_relaxed);
  const uint64_t others =
      produced() - slot_->lost[static_cast<size_t>(Loss::kNested)].load(std::memory_order_relaxed);
  if (nested_at_ != others) nested_in_a_row_ = 0;
  nested_at_ = others;
  if (IsBelow(frame - kSignalFrame, here) && ++nested_in_a_row_ < kMostInARow) {
    Lose(Loss::kNested);
    return false;
  }
  SetBusy(here);
  PutInOrder();
  return true;
}

void ThreadState::PutInOrder() {
  nested_in_a_row_ = 0;
  if (!InOwnProcess()) return;
  if (pending_ != nullptr && pending_ != chunk_) {
    g_segment->ReturnChunk(*pending_);
    pending_ = nullptr;
  }
  uint64_t placed = 0;
  if (chunk_ != nullptr) {
    GoOnInChunk();
    placed =
        first_event_ + proto::CommittedEvents(chunk_->committed.load(std::memory_order_relaxed));
  }
  for (const auto& lost : slot_->lost) placed += lost.load(std::memory_order_relaxed);
  const uint64_t missing = produced() - placed;
  // More than that, and the program has written over our counters.
  constexpr uint64_t kMostMissing = 1 << 10;
  if (missing > 0 && missing < kMostMissing) {
    Add(slot_->lost[static_cast<size_t>(Loss::kInterrupted)], missing);
  }
}

bool ThreadState::MakeRoom(size_t bytes) {
  const uintptr_t here = StackPointer();
  if (IsBusy() && !TakeOver(here)) return false;
  SetBusy(here);
  const bool has_room = HasRoom(bytes);
  SetBusy(0);
  return has_room;
}

void ThreadState::CountUnplaced(size_t bytes) {
  const Loss loss = bytes > kMaxEventBytes ? Loss::kTooLarge : g_segment->WhyNoChunk();
  Add(slot_->lost[static_cast<size_t>(loss)], 1);
  SetBusy(0);
}

}  // namespace ranktap::agent
