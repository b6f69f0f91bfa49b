// Start, fork, exit.
// Runs on: see lifecycle.h.  May not: run static destructors (everything here is leaked).
#include "agent/entry/lifecycle.h"

#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/core/cost_fields.h"
#include "agent/core/default_floats.h"
#include "agent/core/file_size_limit.h"
#include "agent/core/futex.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/core/memory_limit.h"
#include "agent/core/own_thread.h"
#include "agent/core/segment.h"
#include "agent/core/writer.h"
#include "agent/entry/capture_level.h"
#include "agent/entry/confinement.h"
#include "agent/entry/departure.h"
#include "agent/entry/injection.h"
#include "agent/entry/process_rank.h"
#include "agent/entry/python_forks.h"
#include "agent/sources/cupti/cupti_source.h"
#include "agent/sources/source.h"
#include "agent/sources/torch/torch_flight.h"
#include "agent/transport/messages.h"
#include "agent/transport/sender.h"
#include "proto/spool.h"

namespace ranktap::agent {
namespace {

enum class State : uint32_t { kFresh, kStarting, kRunning, kOff };

// All that the agent has, made at the start and never destroyed.
struct Running {
  AgentConfig config;
  std::vector<std::string> notes;
  std::array<uint8_t, 16> session{};
  Segment segment;
  Arena arena;
  std::unique_ptr<Sender> sender;
};

constexpr uint64_t kOtherThreadNs = 1'000'000'000;  // that another thread is waited for
constexpr uint32_t kEndedByExit = 1;                // v1.Goodbye.REASON_EXIT

constinit std::atomic<State> g_state{State::kFresh};
constinit Running* g_running = nullptr;
constinit std::atomic<bool> g_cuda_seen{false};
constinit std::atomic<pid_t> g_pid{0};  // of the process that starts or has started the agent
constinit std::atomic<uint64_t> g_started_ns{0};  // CLOCK_MONOTONIC

void AddCost(CostFields& cost) {
  const ThreadStates::OwnCost own = ThreadStates::SumOwnCost();
  cost.callbacks = own.callbacks;
  cost.polls = own.polls;
  constexpr uint64_t kEnoughSamples = 8;  // one in a cold cache is not an estimate
  if (own.sampled_callbacks >= kEnoughSamples) cost.callback_ticks = own.callback_ticks;
  cost.watched_ns = ClockNs(CLOCK_MONOTONIC) - g_started_ns.load();
  cost.stall_max_ticks = own.max_ticks;
  for (const Source& source : AllSources()) source.add_cost(cost);
  KeepToBudget(cost);
}

// The sender asks before each round.
bool SenderGoesOn() {
  if (!ThreadsMayRun()) return false;
  if (!ProgramHasLeft()) return true;
  ExitAsLastThread();
  return false;
}

// A fork child has none of our threads, and the rings are not its own.
void InForkChild() {
  GoQuiet();
  TellForked();
  if (g_state.load() == State::kFresh || g_pid.load() == getpid()) return;
  g_state.store(State::kOff);
  if (g_running == nullptr) return;
  g_running->sender->CloseInForkChild();
  for (const Source& source : AllSources()) source.close_in_fork_child();
  StopWatchingProgramInForkChild();
  g_running->segment.ReplaceInForkChild();
}

// A child of another thread's fork has half of an agent. Bounded: that fork may hold what the start
// needs, the locks of a malloc whose handlers were registered after ours.
void WaitForStart() {
  constexpr uint64_t kForkWaitsNs = 500'000'000;
  if (g_state.load(std::memory_order_acquire) != State::kStarting) return;
  const uint64_t deadline = ClockNs(CLOCK_MONOTONIC) + kForkWaitsNs;
  while (g_state.load(std::memory_order_acquire) == State::kStarting &&
         ClockNs(CLOCK_MONOTONIC) < deadline) {
    sched_yield();
  }
}

// Runs before what the program registered earlier.
void AtExit() {
  if (!Capturing(kCaptureAlive)) return;
  const DefaultFloats floats;
  KeepOwnThreads();
  StopSteppingDown();
  (void)HadMemory(RefreshRankIdentity);
  (void)Contain(false, [] {
    constexpr uint64_t kMillisecond = 1'000'000;
    // With CUDA, the last flush has just brought what the devices are; on a loaded machine a sender
    // that was given 5 ms as well left 3 ranks in 16 without them.
    constexpr uint64_t kFarewellMs = 5, kFarewellWithCudaMs = 100;
    const uint64_t deadline = ClockNs(CLOCK_MONOTONIC) + Config().exit_ms * kMillisecond;
    FinishSources(deadline);
    // Into a spool go final accounts: nothing may come after them.
    ClearCapture(kCaptureRanges | kCaptureCuda);
    const uint64_t farewell = g_cuda_seen.load() ? kFarewellWithCudaMs : kFarewellMs;
    g_running->sender->Finish(
        std::min(deadline, ClockNs(CLOCK_MONOTONIC) + farewell * kMillisecond), deadline);
    g_running->segment.WriteClock(ReadClocks());
    g_running->segment.header().last_words.ended.store(kEndedByExit);
    return true;
  });
  // From here on other threads record nothing. The rings stay: the collector drains them.
  GoQuiet();
}

// In this process itself, and not in a child that shares its memory.
bool IsOwnProcess() { return Capturing(kCaptureAlive) && getpid() == g_pid.load(); }

void StopNow(std::string_view why) {
  constexpr uint64_t kMillisecond = 1'000'000, kStopMs = 500;
  const DefaultFloats floats;
  StopSteppingDown();
  const uint64_t deadline = ClockNs(CLOCK_MONOTONIC) + kStopMs * kMillisecond;
  const GapFields gap{.reason = proto::GapReason::kConfined,
                      .source = {},
                      .start_ticks = NowTicks(),
                      .end_ticks = 0,
                      .detail = why};
  if (!HadMemory([&gap] { AnnounceGap(gap); })) Log("no memory to say why recording ends", why);
  ClearCapture(kCaptureRanges | kCaptureCuda | kCaptureFramework);
  FinishSources(deadline);
  PauseThreads();
  g_running->sender->Wake();
  if (!WaitForOwnThreadsEnd(deadline)) Log("a thread of ours did not end in time", why);
  g_running->sender->Finish(deadline, deadline);
  g_running->segment.WriteClock(ReadClocks());
}

// A second thread waits for the first: when this returns there is nobody of ours.
void StopForGood(std::string_view why) {
  if (!IsOwnProcess()) return;
  static constinit std::atomic<bool> begun{false};
  if (!begun.exchange(true)) {
    (void)Contain(false, [why] { return StopNow(why), true; });
    GoQuiet();
  }
  const uint64_t deadline = ClockNs(CLOCK_MONOTONIC) + kOtherThreadNs;
  while (Capturing(kCaptureAlive) && ClockNs(CLOCK_MONOTONIC) < deadline) sched_yield();
}

// The thread of the program that has sent ours away, by its number: they come back when its call
// has been made. A signal handler's call in the midst of that finds nobody to send away.
constinit std::atomic<pid_t> g_pauser{0};

bool BeThePauser() {
  const uint64_t deadline = ClockNs(CLOCK_MONOTONIC) + kOtherThreadNs;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  for (pid_t other = 0; !g_pauser.compare_exchange_weak(other, self); other = 0) {
    if (other == self || ClockNs(CLOCK_MONOTONIC) >= deadline) return false;
    sched_yield();
  }
  return true;
}

bool Pause(Pauses pauses) {
  constexpr uint64_t kPauseNs = 500'000'000;
  if (!IsOwnProcess() || (pauses == Pauses::kIfAlone && !ProgramIsAlone()) || !BeThePauser()) {
    return false;
  }
  for (const Source& source : AllSources()) source.pause();
  PauseThreads();
  g_running->sender->Wake();
  if (WaitForOwnThreadsEnd(ClockNs(CLOCK_MONOTONIC) + kPauseNs)) return true;
  Log("a thread of ours did not end in time, and ends for good");
  g_pauser.store(0);
  return false;
}

void Resume() {
  ResumeThreads();
  for (const Source& source : AllSources()) source.resume();
  if (!g_running->sender->Start()) {
    Log("the system gives no thread back: what the rings hold is taken at the end");
  }
  g_pauser.store(0);
}

void WatchConfinement() {
  const ConfinementDuties duties = {
      .stop_for_good = &StopForGood,
      .pause = &Pause,
      .resume = &Resume,
      .is_alone = &ProgramIsAlone,
      .in_fork_child = CapturePageTellsForks() ? nullptr : &InForkChild};
  InstallConfinementHooks(duties);
  InstallPythonForkHooks(duties);
}

// Its leak check counts what a live thread of ours has as possibly lost.
bool RunsUnderValgrind() {
  const char* preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "/vgpreload_") != nullptr;
}

const char* ReasonToStayOff(const AgentConfig& config) {
  if (getauxval(AT_SECURE) != 0) return "the process runs with raised privileges (AT_SECURE)";
  if (config.disable) return "RANKTAP_DISABLE is set";
  if (config.socket_path.empty()) return "RANKTAP_SOCKET is not set";
  if (HasFewDescriptors()) return "RLIMIT_NOFILE (ulimit -n) leaves too few descriptors";
  if (FutexIsRefused()) return "the system refuses futex";
  if (RunsUnderValgrind()) return "the program runs under valgrind";
  return nullptr;
}

const char* MakeRings(Running& running) {
  uint64_t mib = running.config.ring_mib;
  if (const uint64_t allowed = LargestFile() >> 20; allowed < mib) {
    if (allowed == 0) return "RLIMIT_FSIZE (ulimit -f) leaves no room for the rings";
    running.notes.push_back("RLIMIT_FSIZE (ulimit -f): rings of " + std::to_string(allowed) +
                            " MiB instead of " + std::to_string(mib));
    mib = allowed;
  }
  // In a small container the rings would leave the program too little.
  constexpr uint64_t kShare = 8, kLeastMib = 2;
  const uint64_t limit_mib = MemoryLimit() >> 20;
  if (const uint64_t share = std::max(limit_mib / kShare, kLeastMib); share < mib) {
    running.notes.push_back("memory limit of the control group: rings of " + std::to_string(share) +
                            " MiB instead of " + std::to_string(mib));
    mib = share;
  }
  return running.segment.Create(mib << 20, running.session.data()) ? nullptr
                                                                   : "no memory for the rings";
}

const char* SetUp(Running& running) {
  ChooseHostClock();
  if (getrandom(running.session.data(), running.session.size(), 0) < 0) return "no random numbers";
  if (const char* reason = MakeRings(running)) return reason;
  constexpr size_t kTableBytes = Arena::kTableSlots * sizeof(std::atomic<uint64_t>);
  void* table = mmap(nullptr, kTableBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED || !ThreadStates::Create(running.segment)) return "no memory for threads";
  running.arena.Attach(running.segment, static_cast<std::atomic<uint64_t>*>(table));
  g_agent = {
      .config = &running.config, .names = &running.arena, .segment = &running.segment.header()};
  if (!MapCapturePage()) return "no memory for the capture word";
  if (!CapturePageTellsForks()) {
    running.notes.push_back(
        "this kernel has no MADV_WIPEONFORK: forks are noticed where they go through libc");
  }
  return nullptr;
}

FileSpool::Setup SpoolOf(const Running& running) {
  const std::string& asked = running.config.spool_directory;
  return {.directory = asked.empty() ? proto::SpoolDirectoryOf(geteuid()) : asked,
          .session = std::string(running.session.begin(), running.session.end()),
          .limit_bytes = uint64_t{running.config.spool_mib} << 20};
}

void MakeSender(Running& running) {
  const std::string hello = EncodeHello({.session = running.session,
                                         .process = ReadProcessInfo(running.config.redact),
                                         .rank = FindRankAtStart(),
                                         .loaded_by = AgentLoadedBy(),
                                         .level = running.config.level,
                                         .host_clock = g_host_clock,
                                         .segment_bytes = running.segment.bytes(),
                                         .notes = running.notes,
                                         .schedule = running.config.schedule,
                                         .socket = running.config.socket_path});
  running.sender = std::make_unique<Sender>(running.segment, running.arena,
                                            Sender::Setup{.socket_path = running.config.socket_path,
                                                          .hello = hello,
                                                          .spool = SpoolOf(running),
                                                          .on_level = OnLevelOrder,
                                                          .on_cupti_trial = TellCuptiTrial,
                                                          .on_flight_request = DumpFlightRecorder,
                                                          .on_beat = RefreshNcclRank,
                                                          .goes_on = SenderGoesOn,
                                                          .add_cost = AddCost});
}

const char* StartSender(Sender& sender) {
  // From here on the collector holds the rings: what is in them survives this process, however
  // soon it dies. Does not wait: a collector that is not there is tried again by the thread.
  (void)HadMemory([&sender] { sender.TryConnect(); });
  return sender.Start() ? nullptr : "the system gives no thread";
}

bool StayOff(const char* reason) {
  Log("off in this process", reason);
  GoQuiet();
  return false;
}

// Throws where memory was refused, and may then be called again.
const char* TryStart() {
  ParsedConfig parsed = ParseAgentConfig(EnvironmentNow());
  OpenLog(parsed.config.log_path.c_str());
  for (const std::string& warning : parsed.warnings) Log(warning);
  if (const char* reason = ReasonToStayOff(parsed.config)) return reason;
  auto running = std::make_unique<Running>();
  running->config = std::move(parsed.config);
  running->notes = std::move(parsed.warnings);
  if (const char* failure = SetUp(*running)) return failure;
  MakeSender(*running);
  g_running = running.release();
  WatchProgram();
  // Before there is a sender: an order that it brings must not be undone here.
  BeginCapture(g_running->config.level, g_running->config.budget_ppm);
  return StartSender(*g_running->sender);
}

// After one refused allocation this process can still be recorded.
bool Start() {
  constexpr int kTries = 3;
  g_started_ns.store(ClockNs(CLOCK_MONOTONIC));
  const char* failure = "no memory";
  for (int i = 0; i < kTries && g_running == nullptr; ++i) {
    if (HadMemory([&failure] { failure = TryStart(); })) break;
  }
  if (failure != nullptr) return StayOff(failure);
  std::atexit(&AtExit);
  (void)HadMemory(WatchConfinement);
  return true;
}

}  // namespace

bool StartOnce() {
  State state = g_state.load(std::memory_order_acquire);
  if (state == State::kFresh) {
    // Read by the child of a fork in the midst of it. Two threads write the same.
    g_pid.store(getpid());
    if (g_state.compare_exchange_strong(state, State::kStarting, std::memory_order_acq_rel)) {
      const bool started = !DisabledByEnvironment(environ) && Contain(false, [] {
        const DefaultFloats floats;
        pthread_atfork(&WaitForStart, nullptr, &InForkChild);
        return Start();
      });
      state = started ? State::kRunning : State::kOff;
      g_state.store(state, std::memory_order_release);
      return started;
    }
  }
  // Another thread is at it, for milliseconds. A child of a raw fork has no such thread.
  while (state == State::kStarting) {
    if (g_pid.load() != getpid()) return false;
    sched_yield();
    state = g_state.load(std::memory_order_acquire);
  }
  if (state != State::kRunning || !Capturing(kCaptureAlive)) return false;
  (void)HadMemory(WatchConfinement);
  return true;
}

void OnCudaInit() {
  if (g_cuda_seen.exchange(true)) return;
  const DefaultFloats floats;
  (void)HadMemory(RefreshRankIdentity);
  if (Config().cuda) BeginCupti(CurrentLevel());
  // Registered again: where NVTX came first, CUDA's teardown would run before ours.
  std::atexit(&AtExit);
}

}  // namespace ranktap::agent
