// The drain thread's loop.
// Runs on: see cupti_drain.h.  May not: force a flush while the program runs: that hands out
// kernels that are still running, without an end, and consumes them.
#include "agent/sources/cupti/cupti_drain.h"

#include <time.h>

#include <algorithm>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/core/futex.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/core/sanitizers.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_client.h"
#include "agent/sources/cupti/cupti_encode.h"
#include "agent/sources/cupti/cupti_watch.h"
#include "agent/stacks/stack_capture.h"

namespace ranktap::agent::cupti {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kRetryOwnedEvery = 60'000 * kMillisecond;
constexpr uint64_t kWindowPatience = 2'000 * kMillisecond;
constexpr uint64_t kHandOverPatience = 200 * kMillisecond;
constexpr uint64_t kClosingFlushEvery = 50 * kMillisecond;

uint64_t NowNs() { return ClockNs(CLOCK_MONOTONIC); }

void Note(const std::string& text) {
  Log(text);
  AnnounceNote(text);
}

// The correlation id of records that belong to a call.
std::optional<uint32_t> CorrelationOf(const Record& record) {
  switch (record.kind) {
    case Kind::kConcurrentKernel:
      return reinterpret_cast<const KernelRecord&>(record).correlation;
    case Kind::kMemcpy:
      return reinterpret_cast<const MemcpyRecord&>(record).correlation;
    case Kind::kMemcpy2:
      return reinterpret_cast<const PeerMemcpyRecord&>(record).correlation;
    case Kind::kMemset:
      return reinterpret_cast<const MemsetRecord&>(record).correlation;
    case Kind::kSynchronization:
      return reinterpret_cast<const SynchronizationRecord&>(record).correlation;
    case Kind::kGraphTrace:
      return reinterpret_cast<const GraphTraceRecord&>(record).correlation;
    case Kind::kMemory2:
      return reinterpret_cast<const MemoryRecord&>(record).correlation;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool Drain::Prepare() {
  began_realtime_ns_ = ClockNs(CLOCK_REALTIME);
  began_ns_ = NowNs();
  loaded_ = LoadApi(Config().cupti_path);
  Announce(proto::FrameType::kAmend, true, EncodeLibraries(loaded_, ReadDriverFacts()));
  if (loaded_.ok() && !buffers_.Create(size_t{Config().cupti_buffers_mib} << 20,
                                       FeaturesOf(loaded_.version).may_refuse_buffers)) {
    loaded_.failure = "no memory for CUPTI's buffers";
  }
  NoteStaticCupti();
  if (!loaded_.ok()) {
    Note("no kernels: " + loaded_.failure);
    return false;
  }
  WatchCalls(loaded_.api);
  g_callbacks.api = &loaded_.api;
  g_callbacks.calls = &calls_;
  g_callbacks.buffers = &buffers_;
  g_callbacks.wants_correlation = &wants_correlation_;
  if (loaded_.deadly) AskForTrial();
  MakeTables();
  InstallClientHooks(loaded_, {.yield = [this](const char* why) { YieldToClient(why); },
                               .resume = [this] { ResumeAfterClient(); },
                               .holds = [this] { return armed_.load() || parked_.load(); }});
  return true;
}

void Drain::ApplyLevel(proto::Level level) {
  wanted_.store(level);
  if (level != stack_level_) stacks::SetStackLevel(stack_level_ = level);
  session_->SetGraphNodes(level >= proto::Level::kFull);
  g_callbacks.large_buffers.store(level >= proto::Level::kFull, std::memory_order_relaxed);
  if (level >= proto::Level::kKernels) {
    const bool may_arm = may_call_.load() && !ClientIsActive() && NowNs() >= retry_at_ns_;
    if (!session_->armed() && may_arm) Arm();
    // Also where the end of a gap found no memory.
    if (session_->armed() && gap_since_ticks_ != 0) {
      EndGap();
      NoteWrongGraphIds();
    }
  } else if (session_->armed()) {
    Disarm();
  }
}

void Drain::Arm() {
  // Before the first callback can come, so that no call is seen by half.
  g_callbacks.first_correlation.store(0);
  g_callbacks.epoch.fetch_add(1);
  SetCapture(kCaptureCuda);
  // What the program's client has left in CUPTI is to go into its buffers, and ours into ours.
  if (gap_since_ticks_ != 0 && gap_reason_ == proto::GapReason::kOtherProfiler) Flush();
  LearnVersion();
  std::string failure = session_->Arm(/*late=*/writer_ != nullptr);
  if (session_->owned_by_other() && ClientHoldsSubscriptionAlone()) {
    failure = session_->ArmWithoutCallbacks(/*late=*/true);
    if (failure.empty()) NoteMissingCallbacks();
  }
  errors_.store(session_->errors());
  if (!failure.empty()) {
    ClearCapture(kCaptureCuda);
    Unpark();
    if (gap_since_ticks_ == 0) {
      Note("no kernels: " + failure);
      MarkGap(proto::GapReason::kOtherProfiler, failure);
    }
    retry_at_ns_ = NowNs() + kRetryOwnedEvery;
    if (session_->owned_by_other()) SetClientWasFirst(true);
    return;
  }
  if (session_->has_callbacks()) SetClientWasFirst(false);
  armed_.store(true);
  retry_at_ns_ = 0;
}

// Announced as open at once, since the process may end in it, and again with its end.
void Drain::MarkGap(proto::GapReason reason, std::string detail) {
  gap_since_ticks_ = NowTicks();
  gap_reason_ = reason;
  gap_detail_ = std::move(detail);
  AnnounceGap({.reason = gap_reason_,
               .source = "cupti",
               .start_ticks = gap_since_ticks_,
               .end_ticks = 0,
               .detail = gap_detail_});
}

// A window holds what was launched in it: the kinds stay on until the last launched kernel's record
// has come, or two seconds have passed.
void Drain::Disarm() {
  ClearCapture(kCaptureCuda);
  MarkGap(wanted_because_.load(), "the level was lowered");
  session_->StopCallbacks();
  CompleteWindow(kWindowPatience);
  // What was launched after its end would come with the next one.
  if (!FeaturesOf(loaded_.version).kernel_kind_stays) session_->DisableKinds();
  Flush();
  DrainCompleted();
  closing_ = false;
  LeaveSession();
  armed_.store(false);
  errors_.store(session_->errors());
  DrainCompleted();
}

// Records of a graph's nodes come in no order: complete is when the last launch has been seen and
// another flush brings nothing.
void Drain::CompleteWindow(uint64_t patience_ns) {
  // Without callbacks nothing tells what was launched in it.
  if (!session_->has_callbacks()) return Flush();
  const ThreadStates::LastCalls last = ThreadStates::FindLastCalls();
  window_last_correlation_ = last.correlation;
  window_last_launch_ = last.launch;
  // Nothing launched, or all of it has come already.
  window_last_launch_seen_ = last.launch == 0 || (last.launch == newest_kernel_ &&
                                                  kernels_.load() >= ThreadStates::CountLaunches());
  closing_ = true;
  const uint64_t deadline = NowNs() + patience_ns;
  for (;;) {
    const uint64_t before = window_records_;
    Flush();
    DrainCompleted();
    if (window_last_launch_seen_ && window_records_ == before) return;
    if (finish_.load() || NowNs() >= deadline) return;
    buffers_.WaitForCompleted(kClosingFlushEvery);
  }
}

// Everything back from CUPTI before the program's client starts: a buffer of ours that came to its
// callback would be one it never lent. What is on the device at this moment gets a moment to end;
// the forced flush gives up the rest.
void Drain::HandOver() {
  MarkGap(proto::GapReason::kOtherProfiler,
          std::string("the program called ") + client_wants_.load());
  session_->StopCallbacks();
  CompleteWindow(kHandOverPatience);
  session_->DisableKinds();
  (void)loaded_.api.ActivityFlushAll(kFlushForced);
  DrainCompleted();
  closing_ = false;
  session_->Disarm();
  DrainCompleted();
  armed_.store(false);
  errors_.store(session_->errors());
}

bool Drain::StartThread() {
  // CUPTI's flush runs on it, and buffers that it completes: untouched, the size costs nothing.
  constexpr size_t kStackBytes = 8u << 20;
  const bool started =
      thread_.Start({.name = "ranktap-drain",
                     .nice = 5,
                     .stack_bytes = kStackBytes,
                     .body = [](void* drain) { static_cast<Drain*>(drain)->Run(); },
                     .owner = this});
  thread_runs_.store(started);
  // On a thread of the program's, below a function of libc's.
  if (!started) (void)HadMemory([] { Note("no kernels: the system gives no thread"); });
  return started;
}

void Drain::Run() {
  writer_ = ThreadState::Attach(proto::WriterKind::kDrain);
  if (writer_ == nullptr) return Note("no kernels: more threads than writers");
  // What CUPTI and the driver call us for on this thread is our own doing.
  writer_->GuardForGood();
  constexpr uint64_t kSlowFlushEvery = 5'000 * kMillisecond;
  flush_every_ns_ = uint64_t{Config().flush_ms} * kMillisecond;
  if (FeaturesOf(loaded_.version).calls_slow_down) {
    flush_every_ns_ = std::max(flush_every_ns_, kSlowFlushEvery);
  }
  flush_at_ns_ = NowNs() + flush_every_ns_;
  // What a turn has not done, the next one finds undone.
  while (!finish_.load() && !paused_.load()) {
    if (!HadMemory([this] { TakeTurn(); })) AfterTurnWithoutMemory();
  }
  ended_cpu_ns_ = cpu_ns_.load();
  if (!finish_.load()) return;
  if (session_->armed()) {
    (void)loaded_.api.ActivityFlushAll(kFlushForced);
    (void)HadMemory([this] { DrainCompleted(); });
  }
  finished_.store(1);
  FutexWake(finished_);
}

void Drain::TakeTurn() {
  const uint64_t now = NowNs();
  uint64_t wait_until = flush_at_ns_;
  if (!session_->armed() && retry_at_ns_ > now) {
    wait_until = std::min<uint64_t>(wait_until, retry_at_ns_);
  }
  buffers_.AwaitWake(wait_until > now ? wait_until - now : 0);
  if (client_wants_.load() != nullptr) {
    if (session_->armed()) HandOver();
    Unpark();
    client_wants_.store(nullptr);
    client_served_.fetch_add(1);
    FutexWake(client_served_);
  }
  if (g_callbacks.ended.load(std::memory_order_acquire)) GiveUp();
  HeedTrial();
  ApplyLevel(wanted_.load());
  // A hook that met an unknown module has woken us for it.
  stacks::RefreshModules();
  DrainCompleted();
  CheckCorrelation();
  const bool runs_low = buffers_.TakeRunningLow();
  if (NowNs() >= flush_at_ns_ || runs_low) {
    flush_at_ns_ = NowNs() + flush_every_ns_;
    if (session_->armed() || (runs_low && session_->parked())) Flush();
    DrainCompleted();
    WatchForRecords();
    RefreshClientHooks();
  }
  cpu_ns_.store(ended_cpu_ns_ + ClockNs(CLOCK_THREAD_CPUTIME_ID));
}

void Drain::AfterTurnWithoutMemory() {
  constexpr uint64_t kPatience = 10 * kMillisecond;
  Log("no memory for a turn of the drain: it is taken again");
  flush_at_ns_ = std::max(flush_at_ns_, NowNs() + kPatience);
}

void Drain::Flush() {
  if (loaded_.api.ActivityFlushAll(0) != kSuccess) errors_.fetch_add(1);
  flushes_.fetch_add(1);
}

void Drain::DrainCompleted() {
  if (writer_ == nullptr) return;
  BufferPool::Buffer* buffer = buffers_.TakeCompleted();
  if (buffer != nullptr) records_->SetBounds(PossibleTimes());
  while (buffer != nullptr) {
    BufferPool::Buffer* next = buffer->next;
    if (buffer->discard) {
      CountDiscarded(*buffer);
    } else {
      DrainBuffer(*buffer);
    }
    size_t dropped = 0;
    // Between windows it is nobody's loss; asked all the same, since CUPTI then begins at 0.
    if (loaded_.api.ActivityGetNumDroppedRecords(buffer->context, 0, &dropped) == kSuccess &&
        dropped != 0 && !session_->parked()) {
      writer_->Lose(proto::Loss::kCuptiDropped, dropped);
      kernels_.fetch_add(dropped);
    }
    buffers_.Recycle(*buffer);
    buffer = next;
  }
  if (const uint32_t shared = buffers_.TakeSharedCompleted(); shared != 0) {
    writer_->Lose(proto::Loss::kCuptiUnreadable, shared);
  }
  names_missing_.store(records_->names_missing());
  NoteImpossibleTimes();
}

void Drain::DrainBuffer(const BufferPool::Buffer& buffer) {
  constexpr Result kErrorMaxLimit = 12;  // CUPTI's way to say: no more records
  Record* record = nullptr;
  Result result;
  while ((result = loaded_.api.ActivityGetNextRecord(buffer.data, buffer.valid_bytes, &record)) ==
         kSuccess) {
    (void)Contain(false, [this, record] { return EmitRecord(*record), true; });
  }
  if (result != kErrorMaxLimit) writer_->Lose(proto::Loss::kCuptiUnreadable);
}

void Drain::CountDiscarded(const BufferPool::Buffer& buffer) {
  Record* record = nullptr;
  while (loaded_.api.ActivityGetNextRecord(buffer.data, buffer.valid_bytes, &record) == kSuccess) {
    if (CountKernel(*record)) writer_->Lose(proto::Loss::kCuptiDiscarded);
  }
}

void Drain::EmitRecord(const Record& record) {
  switch (record.kind) {
    case Kind::kDevice:
      HideFromLeakCheck(reinterpret_cast<const DeviceRecord&>(record).name);
      return Announce(proto::FrameType::kAmend, true,
                      EncodeDevice(reinterpret_cast<const DeviceRecord&>(record)));
    case Kind::kRuntime:
    case Kind::kDriver:
      return;  // only on so that CUPTI gives correlation ids (EnableApiRecords)
    default:
      break;
  }
  KeepNewest(record);
  if (closing_) {
    if (IsOutsideWindow(record)) return;
    ++window_records_;
    window_last_launch_seen_ |= CorrelationOf(record) == window_last_launch_;
  }
  if (!CountKernel(record)) return;
  if (!records_->Emit(record, *writer_)) writer_->Lose(proto::Loss::kCuptiUnknown);
}

void Drain::KeepNewest(const Record& record) {
  if (record.kind != Kind::kConcurrentKernel && record.kind != Kind::kGraphTrace) return;
  const uint32_t correlation = *CorrelationOf(record);
  if (static_cast<int32_t>(correlation - newest_kernel_) > 0) newest_kernel_ = correlation;
}

bool Drain::IsOutsideWindow(const Record& record) const {
  const auto correlation = CorrelationOf(record);
  return correlation && static_cast<int32_t>(*correlation - window_last_correlation_) > 0;
}

void Drain::RequestLevel(proto::Level level, proto::GapReason reason) {
  wanted_because_.store(reason);
  wanted_.store(level);
  buffers_.Wake();
}

void Drain::AddCost(CostFields& cost) const {
  cost.drain_cpu_ns += cpu_ns_.load();
  cost.flushes += flushes_.load();
  cost.cupti_errors += errors_.load();
  cost.names_missing += names_missing_.load();
}

}  // namespace ranktap::agent::cupti
