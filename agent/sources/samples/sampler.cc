// The sampler's thread.
// Runs on: see sampler.h.  May not: see there.
#include "agent/sources/samples/sampler.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/core/futex.h"
#include "agent/core/host_clock.h"
#include "agent/core/own_thread.h"
#include "agent/core/tell_again.h"
#include "agent/core/writer.h"
#include "agent/sources/samples/child_list.h"
#include "agent/sources/samples/child_stacks.h"
#include "agent/sources/samples/count_spans.h"
#include "agent/sources/samples/own_stacks.h"
#include "agent/sources/samples/process_looks.h"
#include "agent/sources/samples/python_place.h"
#include "agent/sources/samples/read_files.h"
#include "agent/sources/samples/sample_lines.h"
#include "agent/sources/samples/stack_numbers.h"
#include "proto/python_frames.h"

namespace ranktap::agent {
namespace {

constexpr uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr uint64_t kPaceShare = 100;  // 1 % of a core

uint64_t ThreadCpuNs(int32_t thread) {
  // The kernel's own number for it (CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED); pthread_getcpuclockid
  // wants a pthread_t, which may be gone.
  const auto clock = static_cast<clockid_t>(~static_cast<uint32_t>(thread) << 3 | 6);
  timespec now;
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

class Sampler {
 public:
  std::string_view SetUp() {
    lines_.emplace();
    if (!numbers_.Map()) return "no memory";
    const std::string_view problem = stacks_.SetUp();
    if (!problem.empty()) return problem;
    children_.SetUp(stacks_.place(), stacks_.frames().layout());
    counts_.SetUp();
    return problem;
  }

  bool Start() {
    constexpr size_t kStackBytes = 128 << 10;
    return thread_.Start({.name = "ranktap-sample",
                          .nice = 0,
                          .stack_bytes = kStackBytes,
                          .body = [](void* self) { static_cast<Sampler*>(self)->Run(); },
                          .owner = this});
  }

  void SetLevel(proto::Level level) {
    is_on_.store(level >= proto::Level::kRanges);
    forgets_.store(true);
    Wake();
  }

  void Pause() { is_paused_.store(true), Wake(); }
  void Resume() {
    if (is_paused_.exchange(false) && !Start()) AnnounceNote("no thread for samples of stacks");
  }

  void Finish(uint64_t deadline_ns) {
    if (!is_on_.load() || is_paused_.load()) return;
    // Time for one round, on a machine with more threads than cores.
    deadline_ns = std::min(deadline_ns, NowNs() + 20 * kMillisecond);
    is_finishing_.store(true);
    Wake();
    while (has_ended_.load() == 0 && NowNs() < deadline_ns) {
      FutexWait(has_ended_, 0, deadline_ns - NowNs());
    }
  }

  void CloseInForkChild() {
    children_.CloseInForkChild();
    counts_.CloseInForkChild();
  }

  uint64_t cpu_ns() const { return cpu_ns_.load(std::memory_order_relaxed); }

 private:
  bool GoesOn() const {
    return !is_paused_.load() && !is_finishing_.load() && Capturing(kCaptureAlive);
  }

  void Wake() {
    wakes_.fetch_add(1);
    FutexWake(wakes_);
  }

  // A process becomes a rank by an event of its own: a launcher or a loader's worker makes none.
  // The program that `ranktap run` started is recorded whatever it does.
  bool IsWorthIt() {
    if (!is_worth_it_) is_worth_it_ = IsChildOfRun() || ThreadStates::SumOwnCost().callbacks > 0;
    return is_worth_it_;
  }
  static bool IsChildOfRun() {
    return Config().run_pid != 0 && static_cast<uint32_t>(getppid()) == Config().run_pid;
  }

  void Run() {
    while (GoesOn()) {
      const uint32_t seen = wakes_.load();
      const bool is_active = is_on_.load() && IsWorthIt() && !is_given_up_;
      if (is_active && Attach()) (void)Contain(false, [this] { return Round(), true; });
      if (!is_active) Close();
      FutexWait(wakes_, seen, is_active ? WaitNs() : IdleNs());
    }
    Close();
    lines_->SetWriter(nullptr);
    writer_ = nullptr;
    has_ended_.store(is_finishing_.load() ? 1 : 0);
    FutexWake(has_ended_);
  }

  void Close() {
    if (writer_ == nullptr) return;
    CloseLooks();
    counts_.Close();
    lines_->Send();
  }

  void CloseLooks() {
    looks_.Close(*lines_);
    children_.Close(*lines_);
  }

  // Asleep until it is woken, or for as long as a program may take to its first event.
  uint64_t IdleNs() const {
    return is_on_.load() && !is_given_up_ ? 100 * kMillisecond : 3600 * kSecond;
  }

  // Half of the period to one and a half: looks in step with a loop of the program's would meet the
  // same line each time.
  uint64_t WaitNs() {
    const uint64_t period = uint64_t{Config().sample_us} * 1000;
    pace_.random = pace_.random * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX
    const uint64_t pause = period / 2 + (pace_.random >> 48) * period / (1 << 16);
    pace_.due_ns = std::max(pace_.due_ns + pause, pace_.began_ns + kPaceShare * pace_.cpu_ns);
    const uint64_t now = NowNs();
    if (pace_.due_ns <= now) pace_.due_ns = now + pause;
    return pace_.due_ns - now;
  }

  bool Attach() {
    if (writer_ != nullptr) return true;
    // As the drain's, its events stand for no call of the program's.
    writer_ = ThreadState::Attach(proto::WriterKind::kDrain);
    if (writer_ == nullptr) return false;
    writer_->GuardForGood();
    lines_->SetWriter(writer_);
    samples::ChildList::TellActive();
    return true;
  }

  void Round() {
    const uint64_t cpu_before = ClockNs(CLOCK_THREAD_CPUTIME_ID);
    pace_.began_ns = NowNs();
    if (forgets_.exchange(false)) {
      CloseLooks();
      numbers_.Forget();
      counts_.Forget();
    }
    TellAgain();
    if (stacks_.ReadThreads()) LookAtThreads();
    const uint64_t cpu_own = ClockNs(CLOCK_THREAD_CPUTIME_ID);
    LookAtChildren();
    if (pace_.began_ns >= pace_.send_at_ns) {
      lines_->Send();
      pace_.send_at_ns = pace_.began_ns + kSecond;
    }
    pace_.last_began_ns = pace_.began_ns;
    pace_.cpu_ns = cpu_own - cpu_before;
    cpu_ns_.store(ClockNs(CLOCK_THREAD_CPUTIME_ID), std::memory_order_relaxed);
    GiveUpOnNonsense();
  }

  void TellAgain() {
    const uint32_t wanted = g_tell_again.load(std::memory_order_relaxed);
    if (std::exchange(told_again_, wanted) == wanted) return;
    looks_.Cut(*lines_);
    children_.Cut(*lines_);
    lines_->TellAgain();
    numbers_.TellAgain();
    counts_.Forget();
  }

  void LookAtThreads() {
    const uint64_t now_ticks = NowTicks();
    looks_.BeginRound(pace_.began_ns, now_ticks);
    counts_.BeginRound(pace_.began_ns, now_ticks);
    for (const proto::PythonThread& thread : stacks_.threads()) LookAt(thread, now_ticks);
    looks_.EndProcess(stacks_.frames().CountGilWaiters(), *lines_);
    looks_.EndRound(*lines_);
    counts_.EndRound(*lines_);
  }

  void LookAt(proto::PythonThread thread, uint64_t now_ticks) {
    std::span<const proto::PythonFrame> stack;
    const bool is_torn = !stacks_.Read(&thread, &stack);
    if (thread.thread == 0) return;
    samples::LookCounts counts = counts_.Look(thread.thread);
    if (stack.empty() && !is_torn) return;
    counts[0] = ThreadCpuNs(thread.thread);
    stacks_.check().AddThread(counts[0] != 0);
    if (looks_.HasRead(thread.thread, counts)) TellFile(thread.thread, now_ticks);
    const uint32_t frame = is_torn ? 0 : numbers_.NumberOf(stack, stacks_.frames(), *lines_);
    looks_.Add(thread, frame, counts);
  }

  void TellFile(int32_t thread, uint64_t now_ticks) {
    samples::PathBuffer buffer;
    const std::string_view path = samples::FileReadBy(0, thread, &buffer);
    if (!path.empty()) lines_->AddRead(thread, now_ticks, path);
  }

  // They cost by their number: a pace of their own leaves ours alone.
  void LookAtChildren() {
    if (pace_.began_ns < children_due_ns_) return;
    const uint64_t cpu_before = ClockNs(CLOCK_THREAD_CPUTIME_ID);
    children_.Round(pace_.began_ns, NowTicks(), numbers_, *lines_);
    const uint64_t cpu = ClockNs(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
    children_due_ns_ = pace_.began_ns + kPaceShare * cpu;
  }

  void GiveUpOnNonsense() {
    if (is_given_up_) return;
    const std::string_view why = stacks_.check().TakeVerdict();
    if (why.empty()) return;
    is_given_up_ = true;
    LogAndAnnounce("Python stacks are not sampled: " + std::string(why));
  }

  OwnThread thread_;
  samples::OwnStacks stacks_;
  std::optional<samples::SampleLines> lines_;
  samples::StackNumbers numbers_;
  samples::ProcessLooks looks_;
  samples::ChildStacks children_;
  samples::CountSpans counts_;
  uint64_t children_due_ns_ = 0;
  ThreadState* writer_ = nullptr;
  bool is_worth_it_ = false, is_given_up_ = false;
  uint32_t told_again_ = 0;
  struct Pace {
    uint64_t began_ns, last_began_ns;  // of rounds
    uint64_t cpu_ns;                   // of the last one
    uint64_t due_ns;                   // the next one
    uint64_t send_at_ns;
    uint64_t random;
  } pace_{};
  std::atomic<uint64_t> cpu_ns_{0};
  std::atomic<bool> is_on_{false}, forgets_{false}, is_paused_{false}, is_finishing_{false};
  std::atomic<uint32_t> wakes_{0}, has_ended_{0};
};

// Never destroyed.
constinit std::atomic<Sampler*> g_sampler{nullptr};

}  // namespace

void StartSampler() {
  if (Config().sample_us == 0 || samples::FindPythonPlace().runtime == 0) return;
  auto* const sampler = new Sampler;
  const std::string_view problem = sampler->SetUp();
  if (!problem.empty()) {
    LogAndAnnounce("Python stacks are not sampled: " + std::string(problem));
    delete sampler;
    return;
  }
  sampler->SetLevel(Config().level);
  if (!sampler->Start()) return LogAndAnnounce("no thread for samples of stacks");
  g_sampler.store(sampler);
}

void SetSampleLevel(proto::Level level, proto::GapReason) {
  if (Sampler* const sampler = g_sampler.load()) sampler->SetLevel(level);
}

void AddSampleCost(CostFields& cost) {
  if (const Sampler* const sampler = g_sampler.load()) cost.drain_cpu_ns += sampler->cpu_ns();
}

void FinishSamples(uint64_t deadline_ns) {
  if (Sampler* const sampler = g_sampler.load()) sampler->Finish(deadline_ns);
}

void PauseSampler() {
  if (Sampler* const sampler = g_sampler.load()) sampler->Pause();
}

void ResumeSampler() {
  if (Sampler* const sampler = g_sampler.load()) sampler->Resume();
}

void CloseSamplerInForkChild() {
  if (Sampler* const sampler = g_sampler.load()) sampler->CloseInForkChild();
}

}  // namespace ranktap::agent
