// The drain thread's loop, and what other threads ask of it.
// Runs on: see cupti_drain.h.  May not: force a flush while the program runs: that hands out
// kernels that are still running, without an end, and consumes them.
#include "agent/sources/cupti/cupti_drain.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/sources/cupti/cupti_broker.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_client.h"
#include "agent/sources/cupti/cupti_encode.h"
#include "agent/sources/cupti/cupti_second_api.h"
#include "agent/sources/cupti/cupti_watch.h"
#include "agent/stacks/stack_capture.h"

namespace ranktap::agent::cupti {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kRetryOwnedEvery = 60'000 * kMillisecond;
constexpr uint64_t kWindowPatience = 2'000 * kMillisecond;
constexpr uint64_t kHandOverPatience = 200 * kMillisecond;
constexpr uint64_t kClosingFlushEvery = 50 * kMillisecond;
// A flush may return before the buffers come. The program waits meanwhile.
constexpr uint64_t kLatePatience = 100 * kMillisecond;

}  // namespace

bool Drain::Prepare() {
  const Doubts::Clocks began = Doubts::ReadClocks();
  doubts_.Begin(began);
  loaded_ = LoadApi(Config().cupti_path);
  Announce(proto::FrameType::kAmend, true, EncodeLibraries(loaded_, ReadDriverFacts()));
  if (loaded_.ok() && !buffers_.Create(size_t{Config().cupti_buffers_mib} << 20,
                                       FeaturesOf(loaded_.version).may_refuse_buffers)) {
    loaded_.failure = "no memory for CUPTI's buffers";
  }
  doubts_.NoteStaticCupti();
  if (!loaded_.ok()) {
    LogAndAnnounce("no kernels: " + loaded_.failure);
    return false;
  }
  graph_mode_.Begin(loaded_.was_mapped);
  WatchCalls(loaded_.api);
  g_callbacks.api = &loaded_.api;
  g_callbacks.calls = &calls_;
  g_callbacks.buffers = &buffers_;
  g_callbacks.wants_correlation = &doubts_.lacks_ids();
  if (loaded_.deadly) {
    trial_.Ask(loaded_, began.monotonic_ns);
    gap_.Begin(proto::GapReason::kError, "this CUPTI is tried in another process first");
  }
  MakeTables();
  InstallClientHooks(loaded_, {.yield = [this](const char* why) { YieldToClient(why); },
                               .resume = [this](uint64_t grace_ms) { ResumeAfterClient(grace_ms); },
                               .holds = [this] { return armed_.load() || parked_.load(); }});
  return true;
}

// Makes the tables that depend on the version; while nothing is armed.
void Drain::MakeTables() {
  if (trial_.may_call()) calls_.Build(loaded_.api, Names());
  Features features = FeaturesOf(loaded_.version);
  features.launches_by_driver_alone |= Config().driver_launches;
  session_.emplace(loaded_, calls_, features);
  session_->LimitDeviceBuffers(Config().device_buffers);
  graph_mode_.Choose(*session_, stack_level_);
  intake_.MakeReader(Names());
}

void Drain::TakeTrial(proto::TrialOutcome outcome) {
  trial_.Take(outcome);
  buffers_.Wake();
}

void Drain::HeedTrial() {
  if (trial_.may_call() || !trial_.HasPassed(NowNs(), loaded_.path)) return;
  MakeTables();
  gap_.End();
}

// Before anything is enabled: no callback reads the tables.
void Drain::LearnVersion() {
  if (!loaded_.version_is_guess || !AskVersionAgain(loaded_, &OnCallback)) return;
  if (std::exchange(loaded_.version_is_guess, false)) {
    return LogAndAnnounce("CUPTI does not say its version: it is taken for " +
                          std::to_string(loaded_.version) + " (" + loaded_.path + ")");
  }
  Announce(proto::FrameType::kAmend, true, EncodeLibraries(loaded_, ReadDriverFacts()));
  MakeTables();
}

void Drain::ApplyLevel(proto::Level level) {
  wanted_.store(level);
  if (level != stack_level_) stacks::SetStackLevel(stack_level_ = level);
  graph_mode_.Choose(*session_, level);
  if (level >= proto::Level::kKernels) {
    const bool may_arm =
        trial_.may_call() && !ClientIsActive() && NowNs() >= client_turn_.ours_at_ns();
    if (!session_->armed() && may_arm) Arm();
    // Also where the end of a gap found no memory.
    if (session_->armed() && gap_.is_open()) {
      gap_.End();
      doubts_.NoteWrongGraphIds(FeaturesOf(loaded_.version));
    }
  } else if (session_->armed()) {
    Disarm();
  }
  graph_mode_.TellOfNodes(*session_, level);
}

void Drain::Arm() {
  // Records of the last window may be here, not yet looked at.
  DrainCompleted();
  intake_.window().End();
  // Before the first callback can come, so that no call is seen by half.
  g_callbacks.first_correlation.store(0);
  g_callbacks.epoch.fetch_add(1);
  SetCapture(kCaptureCuda);
  // The program's client's records are to go into its buffers, and ours into ours.
  if (gap_.IsOpenFor(proto::GapReason::kOtherProfiler)) Flush();
  LearnVersion();
  const bool late = intake_.has_writer();
  hardware_events_.Ask(loaded_, late);
  std::string failure = session_->Arm(late);
  if (session_->owned_by_other() && ClientHoldsSubscriptionAlone()) {
    failure = session_->ArmWithoutCallbacks(/*late=*/true);
    if (failure.empty()) doubts_.NoteMissingCallbacks();
  }
  cost_.SetErrors(session_->errors());
  if (!failure.empty()) return AfterRefusal(failure);
  if (session_->has_callbacks()) SetClientWasFirst(false);
  armed_.store(true);
  client_turn_.ComeBackAt(0);
}

void Drain::AfterRefusal(const std::string& failure) {
  ClearCapture(kCaptureCuda);
  Unpark();
  if (!gap_.is_open()) {
    LogAndAnnounce("no kernels: " + failure);
    gap_.Begin(proto::GapReason::kOtherProfiler, failure);
  }
  client_turn_.ComeBackAt(NowNs() + kRetryOwnedEvery);
  if (session_->owned_by_other() && !second_api::IsOn()) SetClientWasFirst(true);
}

// A window holds what was launched in it: the kinds stay on until the last launched kernel's record
// has come, or two seconds have passed.
void Drain::Disarm() {
  ClearCapture(kCaptureCuda);
  gap_.Begin(wanted_because_.load(), "the level was lowered");
  session_->StopCallbacks();
  CompleteWindow(kWindowPatience);
  // Work that was launched after its end would come with the next one.
  if (!FeaturesOf(loaded_.version).kernel_kind_stays) session_->DisableKinds();
  second_api::IsOn() ? FlushWhole() : Flush();
  DrainCompleted();
  LeaveSession();
  armed_.store(false);
  cost_.SetErrors(session_->errors());
  DrainCompleted();
  EndGraphs();
}

void Drain::CompleteWindow(uint64_t patience_ns) {
  // Without callbacks nothing tells what was launched in it.
  if (!session_->has_callbacks()) return Flush();
  const ThreadStates::LastCalls last = ThreadStates::FindLastCalls();
  intake_.window().Close(last, intake_.kernels().count() >= ThreadStates::CountLaunches().kernels);
  const uint64_t deadline = NowNs() + patience_ns;
  for (;;) {
    Flush();
    DrainCompleted();
    if (intake_.window().EndRound()) return;
    if (thread_.is_finishing() || NowNs() >= deadline) return;
    buffers_.WaitForCompleted(kClosingFlushEvery);
  }
}

// Everything back from CUPTI before the program's client starts: a buffer of ours that came to its
// callback would be one it never lent. Work on the device gets a moment to end; the forced flush
// gives up the rest.
void Drain::HandOver() {
  gap_.Begin(proto::GapReason::kOtherProfiler,
             std::string("the program called ") + client_turn_.wanted_by() + WhyClientStays());
  graph_mode_.TellOfClient(*session_);
  session_->StopCallbacks();
  CompleteWindow(kHandOverPatience);
  session_->DisableKinds();
  FlushWhole();
  session_->Disarm();
  DrainCompleted();
  armed_.store(false);
  cost_.SetErrors(session_->errors());
}

void Drain::LeaveSession() {
  if (!FeaturesOf(loaded_.version).kernel_kind_stays) return session_->Disarm();
  session_->Park();
  intake_.window().Park();
  parked_.store(true);
}

// For a client that is to find nothing of ours. In the end it disables that kind itself.
void Drain::Unpark() {
  parked_.store(false);
  if (!session_->parked()) return;
  session_->DisableKinds();
  FlushWhole();
  session_->Disarm();
  DrainCompleted();
}

void Drain::YieldToClient(const char* why) {
  constexpr uint64_t kYieldPatience = 5'000 * kMillisecond;
  ClearCapture(kCaptureCuda);
  // Not armed at this moment, the drain thread may be about to be.
  if (!thread_.runs() || thread_.is_finishing()) return;
  const uint32_t asked = client_turn_.Ask(why);
  buffers_.Wake();
  if (!client_turn_.Await(asked, NowNs() + kYieldPatience)) {
    Log("CUPTI was not given up in time", why);
  }
}

void Drain::ServeClient() {
  if (client_turn_.wanted_by() == nullptr) return;
  if (session_->armed()) HandOver();
  Unpark();
  client_turn_.Serve();
}

// Some grace: profilers stop and start again between two steps.
void Drain::ResumeAfterClient(uint64_t grace_ms) {
  if (client_turn_.GiveBack(NowNs() + grace_ms * kMillisecond)) buffers_.Wake();
}

// For good: what CUPTI could not mend would come again, and take more of the program's time.
void Drain::GiveUp() {
  if (!session_->armed()) return;
  ClearCapture(kCaptureCuda);
  const std::string why =
      std::string("CUPTI has ended by itself: ") + g_callbacks.last_words.data();
  LogAndAnnounce("no more kernels: " + why);
  gap_.Begin(proto::GapReason::kError, why);
  session_->Forget();
  broker::Forget();
  client_turn_.LeaveForGood();
  armed_.store(false);
  DrainCompleted();
}

bool Drain::StartThread() {
  const bool started = thread_.Start([](void* drain) { static_cast<Drain*>(drain)->Run(); }, this);
  // On a thread of the program's, below a function of libc's.
  if (!started) (void)HadMemory([] { LogAndAnnounce("no kernels: the system gives no thread"); });
  return started;
}

void Drain::Run() {
  ThreadState* const writer = ThreadState::Attach(proto::WriterKind::kDrain);
  intake_.SetWriter(writer);
  if (writer == nullptr) return LogAndAnnounce("no kernels: more threads than writers");
  // CUPTI and the driver call us on this thread for our own doing.
  writer->GuardForGood();
  flush_.Begin(NowNs(), uint64_t{Config().flush_ms} * kMillisecond,
               FeaturesOf(loaded_.version).calls_slow_down);
  // The next turn finds undone whatever this one has not done.
  while (thread_.goes_on()) {
    if (!HadMemory([this] { TakeTurn(); })) AfterTurnWithoutMemory();
  }
  cost_.EndThread();
  if (!thread_.is_finishing()) return;
  if (session_->armed()) (void)HadMemory([this] { FlushWhole(); });
  DeclareHeld();
  thread_.End();
}

void Drain::TakeTurn() {
  const uint64_t now = NowNs();
  const uint64_t ours_at = client_turn_.ours_at_ns();
  uint64_t wait_until = flush_.at_ns();
  if (!session_->armed() && ours_at > now) wait_until = std::min(wait_until, ours_at);
  buffers_.AwaitWake(wait_until > now ? wait_until - now : 0);
  ServeClient();
  if (g_callbacks.ended.load(std::memory_order_acquire)) GiveUp();
  HeedTrial();
  ApplyLevel(wanted_.load());
  stacks::RefreshModules();  // a hook that met an unknown one has woken us for it
  DrainCompleted();
  CheckCorrelation();
  const bool runs_low = buffers_.TakeRunningLow();
  if (NowNs() >= flush_.at_ns() || runs_low) {
    flush_.Next(NowNs());
    if (session_->armed() || (runs_low && session_->parked())) Flush();
    DrainCompleted();
    doubts_.NoteUntimed(intake_.TakeUntimed(), Config().device_buffers);
    doubts_.NoteStaticCupti();
    doubts_.WatchForRecords(NowNs(), session_->armed(), intake_.kernels().count(),
                            ThreadStates::CountLaunches().kernels);
    RefreshClientHooks();
  }
  cost_.CountTurn();
}

void Drain::AfterTurnWithoutMemory() {
  constexpr uint64_t kPatience = 10 * kMillisecond;
  Log("no memory for a turn of the drain: it is taken again");
  flush_.NotBefore(NowNs() + kPatience);
}

void Drain::Flush() {
  const uint64_t began_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  cost_.CountFlush(loaded_.api.ActivityFlushAll(0) == kSuccess);
  const uint64_t took_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID) - began_ns;
  const bool is_dear = flush_cost_.HasTripled(took_ns, intake_.events());
  if (!is_dear || !FeaturesOf(loaded_.version).cpu_use_grows) return;
  flush_.SlowDown();
  doubts_.NoteFlushCost();
}

// Called where nothing of ours is to stay in CUPTI.
void Drain::FlushWhole() {
  const uint64_t deadline = NowNs() + kLatePatience;
  (void)loaded_.api.ActivityFlushAll(kFlushForced);
  if (!buffers_.AwaitReturn(deadline)) Log("CUPTI keeps buffers that a flush was to hand back");
  DrainCompleted();
  (void)intake_.TakeUntimed();
  EndGraphs();
}

void Drain::EndGraphs() {
  doubts_.NoteSilentGraphs(ThreadStates::CountLaunches().graphs, intake_.reader().of_graphs());
}

void Drain::DrainCompleted() {
  if (!intake_.has_writer()) return;
  intake_.TakeCompleted(doubts_);
  cost_.SetNamesMissing(intake_.reader().names_missing());
  doubts_.NoteImpossibleTimes(intake_.reader().impossible_times());
  hardware_events_.Tell(g_callbacks.error.load());
}

void Drain::CheckCorrelation() {
  const bool lacks = intake_.reader().uncorrelated() != 0 || doubts_.lacks_ids().load();
  if (!lacks || !session_->armed() || session_->api_records_enabled()) return;
  session_->EnableApiRecords();
  doubts_.NoteApiRecords();
}

void Drain::RequestLevel(proto::Level level, proto::GapReason reason) {
  wanted_because_.store(reason);
  wanted_.store(level);
  buffers_.Wake();
}

// The process cannot wait any longer, neither for CUPTI nor for room in the rings: what it launched
// and what has no record is declared lost, whatever CUPTI has said. Once.
void Drain::DeclareHeld() {
  const uint64_t kernels = intake_.kernels().GiveUp();
  const uint64_t launches = ThreadStates::CountLaunches().kernels;
  if (launches <= kernels) return;
  ThreadStates::LoseWithoutWriter(proto::Loss::kUnflushed, launches - kernels);
  Log("kernels whose records were still inside CUPTI: " + std::to_string(launches - kernels));
}

void Drain::Pause() {
  if (!thread_.runs()) return;
  thread_.Pause();
  buffers_.Wake();
}

void Drain::Resume() {
  if (!thread_.TakeResume()) return;
  if (!StartThread() && armed_.load()) DeclareHeld();
}

void Drain::Finish(uint64_t deadline_ns) {
  if (!thread_.runs()) return;
  thread_.Finish();
  buffers_.Wake();
  if (!trial_.may_call()) trial_.Note(loaded_.path);
  if (armed_.load() && !thread_.AwaitEnd(deadline_ns)) {
    Log("CUPTI's last records did not come in time");
  }
  DeclareHeld();
}

void Drain::AddCost(CostFields& cost) const { cost_.AddTo(cost); }

}  // namespace ranktap::agent::cupti
