// The sender's loop, with a collector and without.
// Runs on: the sender thread; Finish on the exiting thread.  May not: call CUPTI, CUDA or the
// loader; raise signals in the job.
#include "agent/transport/sender.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/core/futex.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/core/sanitizers.h"
#include "proto/frame.h"

namespace ranktap::agent {

using proto::FrameStatus;
using proto::FrameType;

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr int kBusyPollMs = 10;
constexpr int kIdlePollMs = 50;
constexpr uint64_t kFirstRetry = 100 * kMillisecond;
constexpr uint64_t kLongestRetry = 5 * kSecond;
constexpr uint64_t kGreetingTimeout = 5 * kSecond;
// An outage this long may be for good: a kill would take what only the rings hold.
constexpr uint64_t kSpoolAfter = 1 * kSecond;
constexpr uint64_t kSpoolRetry = 1 * kSecond;
// A block is acknowledged when it is a second old, and a disk may be slow for some more.
constexpr uint64_t kDeafAfter = 3 * kSecond;
constexpr size_t kStackBytes = 256 << 10;

void Run(void* owner) {
  auto* const sender = static_cast<Sender*>(owner);
  while (sender->GoesOn()) sender->RunOnce();
}

}  // namespace

Sender::Sender(Segment& segment, const Arena& arena, Setup setup)
    : segment_(segment),
      setup_(std::move(setup)),
      spool_(setup_.spool),
      delivery_(segment, arena, link_, replay_),
      silent_since_ns_(NowNs()),
      reconnect_(kFirstRetry, kLongestRetry) {}

bool Sender::Start() {
  return thread_.Start({.name = "ranktap-send",
                        .nice = 10,
                        .stack_bytes = kStackBytes,
                        .body = &Run,
                        .owner = this});
}

void Sender::RunOnce() {
  pthread_mutex_lock(&round_);
  int wait_ms = kIdlePollMs;
  if (!HadMemory([&] { wait_ms = RunRound(); })) StartAnew();
  // Acks and orders (150 ms ahead) can wait for the next round.
  const bool talks = link_.connected() && (peer_ != Peer::kLive || link_.unsent_bytes() > 0);
  pollfd wait = talks ? link_.WaitingFor() : pollfd{.fd = -1};
  const uint64_t level_due_ns = levels_.next_ns();
  pthread_mutex_unlock(&round_);
  WaitForWork(&wait, wait_ms, level_due_ns);
}

void Sender::Wake() {
  wakes_.fetch_add(1);
  FutexWake(wakes_);
}

void Sender::WaitForWork(pollfd* peer, int wait_ms, uint64_t level_due_ns) {
  uint64_t wait_ns = static_cast<uint64_t>(wait_ms) * kMillisecond;
  if (level_due_ns != LevelSchedule::kNever) {
    const uint64_t now = NowNs();
    wait_ns = std::min(wait_ns, level_due_ns > now ? level_due_ns - now : 0);
  }
  if (peer->fd < 0) return FutexWait(wakes_, seen_wakes_, wait_ns);
  const timespec timeout{.tv_sec = static_cast<time_t>(wait_ns / kSecond),
                         .tv_nsec = static_cast<long>(wait_ns % kSecond)};
  ppoll(peer, 1, &timeout, nullptr);
}

void Sender::ApplyDueLevel() {
  if (const auto order = levels_.TakeDue(NowNs())) setup_.on_level(*order);
}

int Sender::RunRound() {
  readings_.NoteOwnTime();
  // A program that used up what was there may go on at that rate.
  constexpr int kGrowingPollMs = 1;
  const bool grew = segment_.Grow();
  ApplyDueLevel();
  if (peer_ == Peer::kNone && reconnect_.IsDue(NowNs())) TryConnect();
  bool busy = false;
  switch (peer_.load()) {
    case Peer::kNone:
      SpoolRound();
      return grew ? kGrowingPollMs : kIdlePollMs;
    case Peer::kRefused:
      return kIdlePollMs;
    case Peer::kGreeting:
      if (replay_.spools_are_taken()) SpoolRound();
      if (!reconnect_.IsDue(NowNs())) break;
      Lost();
      return kIdlePollMs;
    case Peer::kReplaying:
      busy = true;
      if (Replay()) peer_ = Peer::kLive;
      break;
    case Peer::kLive:
      announcements_.SayNew(*sink_);
      SendPeriodic(/*last=*/false);
      busy = SendEvents();
      SendFarewells();
      break;
  }
  if (busy) last_event_ns_ = NowNs();
  if (!link_.Exchange()) {
    Lost();
    return kIdlePollMs;
  }
  HandleFrames();
  if (IsDeaf()) Lost();
  if (grew) return kGrowingPollMs;
  return NowNs() - last_event_ns_ > kSecond ? kIdlePollMs : kBusyPollMs;
}

void Sender::Finish(uint64_t deadline_ns, uint64_t spool_deadline_ns) {
  // Alone, the thread may be at a long write of its own.
  const uint64_t last = spool_.enabled() && !Greeted() ? spool_deadline_ns : deadline_ns;
  const timespec until{.tv_sec = static_cast<time_t>(last / kSecond),
                       .tv_nsec = static_cast<long>(last % kSecond)};
  // Never unlocked: the thread's work is done.
  if (pthread_mutex_clocklock(&round_, CLOCK_MONOTONIC, &until) != 0) return;
  TellTsanLocked(&round_);
  const auto finish = [&] { FinishWith(deadline_ns, spool_deadline_ns); };
  if (HadMemory(finish)) return;
  delivery_.DropBatch();
  spool_.Discard();
  if (!HadMemory(finish)) Log("no memory for the last words");
}

void Sender::FinishWith(uint64_t deadline_ns, uint64_t spool_deadline_ns) {
  if (!link_.connected() || (Spooling() && replay_.spools_are_taken()))
    return FinishInSpool(spool_deadline_ns);
  bool told = false;
  while (link_.connected() && NowNs() < deadline_ns) {
    if (Greeted() && !std::exchange(told, true)) {
      announcements_.SayNew(*sink_);
      SendPeriodic(/*last=*/true);
    }
    if (!link_.Exchange()) {
      // It died, and nobody had noticed: what it has not stored is in the rings.
      Lost();
      return FinishInSpool(spool_deadline_ns);
    }
    HandleFrames();
    if (told && link_.unsent_bytes() == 0) return;
    // The welcome has just come: no millisecond is to be waited for more.
    if (Greeted() && !told) continue;
    pollfd wait = link_.WaitingFor();
    poll(&wait, 1, 1);
  }
  if (!link_.connected()) FinishInSpool(spool_deadline_ns);
}

void Sender::TryConnect() {
  reconnect_.Lengthen(NowNs(), /*noise=*/NowTicks() >> 4);
  if (!link_.Connect(setup_.socket_path)) return;
  peer_ = Peer::kGreeting;
  reconnect_.SetTime(NowNs() + kGreetingTimeout);
  const int rings = segment_.fd();
  if (rings < 0)
    AnnounceNote("the program closed the rings' descriptor: a kill loses what is in them");
  link_.PutWithDescriptor({.type = FrameType::kHello}, std::as_bytes(std::span(setup_.hello)),
                          rings);
  if (!link_.Exchange()) Lost();
}

void Sender::Greet(const Welcome& welcome) {
  if (!welcome.refused.empty() || welcome.required_features != 0 ||
      welcome.protocol < kProtocolMin || welcome.protocol > kProtocolMax) {
    return Refuse(welcome);
  }
  reconnect_.Reset();
  silent_since_ns_ = NowNs();
  StartOver();
  sink_ = &link_;
  delivery_.Begin(welcome);
  replay_.Begin(welcome);
  peer_ = spool_.open() || replay_.HasEvents() ? Peer::kReplaying : Peer::kLive;
  if (welcome.level != proto::Level::kUnknown) {
    LevelOrder order;
    order.level = welcome.level;
    order.reason = "welcome";
    order.is_greeting = true;
    setup_.on_level(order);
  }
}

void Sender::Refuse(const Welcome& welcome) {
  Log("the collector refused this process", welcome.refused);
  link_.Drop();
  peer_ = welcome.retry_after_ms == 0 ? Peer::kRefused : Peer::kNone;
  reconnect_.SetTime(NowNs() + welcome.retry_after_ms * kMillisecond);
}

void Sender::Lost() {
  readings_.AddConnection(link_);
  link_.ForgetCounts();
  link_.Drop();
  if (Greeted()) silent_since_ns_ = NowNs();
  peer_ = Peer::kNone;
  replay_.Interrupt();
  reconnect_.SetTime(NowNs() + kFirstRetry);
}

void Sender::StartAnew() {
  Log("no memory for a round of the sender: it begins anew");
  anew_wait_ns_ = std::clamp(2 * anew_wait_ns_, kFirstRetry, kLongestRetry);
  delivery_.DropBatch();
  if (Spooling()) {
    StopSpooling();
  } else {
    Lost();
  }
  spool_retry_at_ns_ = NowNs() + anew_wait_ns_;
  reconnect_.SetTime(spool_retry_at_ns_);
}

void Sender::StartOver() {
  announcements_.StartOver();
  delivery_.StartOver();
}

void Sender::SendPeriodic(bool last) {
  if (!readings_.TakeTurn(last)) return;
  setup_.on_beat();
  readings_.PutClock(segment_, *sink_);
  CostFields cost{};
  setup_.add_cost(cost);
  cost.threads = delivery_.writers_seen();
  readings_.PutCost(cost, link_, *sink_);
  if (last) readings_.Close();
}

void Sender::Heed(const RingDelivery::Sent& sent) {
  if (sent.any && Spooling()) anew_wait_ns_ = 0;
  if (sent.refused) StopSpooling();
}

// True when there was anything to send.
bool Sender::SendEvents() {
  const RingDelivery::Sent sent = delivery_.SendEvents(*sink_);
  Heed(sent);
  return sent.any;
}

void Sender::SendFarewells() { Heed(delivery_.SendFarewells(*sink_)); }

bool Sender::WorthSpooling() {
  if (!spool_.enabled() || NowNs() < spool_retry_at_ns_) return false;
  if (Spooling() && spool_.open()) return true;
  delivery_.rings().Discover();
  if (delivery_.rings().Empty()) return false;
  // With the greeting the collector gets the rings, so a kill takes nothing.
  return RingsFillUp() || (peer_ == Peer::kNone && NowNs() - silent_since_ns_ >= kSpoolAfter);
}

bool Sender::IsDeaf() {
  // From any other collector a process that ends would have left for good.
  if (!Greeted() || !replay_.spools_are_taken()) return false;
  const uint64_t now = NowNs();
  const bool owes = delivery_.awaits_ack() || replay_.HasEvents() || link_.unsent_bytes() > 0;
  if (!owes) silent_since_ns_ = now;
  return spool_.enabled() && now - silent_since_ns_ >= kDeafAfter && RingsFillUp();
}

bool Sender::OpenSpool() {
  StartOver();
  const uint32_t files = spool_.files_made();
  if (!spool_.Open(setup_.hello)) return false;
  sink_ = &spool_;
  if (spool_.files_made() == files) return true;
  // Before any event: a file that goes on after what is gone must say so from the start.
  replay_.DeclareGone(spool_);
  if (spool_.Commit() == FrameSink::Stored::kNow) return true;
  spool_.Remove();
  return false;
}

void Sender::StopSpooling() {
  spool_.Discard();
  StartOver();
  sink_ = &link_;
  spool_retry_at_ns_ = NowNs() + kSpoolRetry;
}

void Sender::SpoolRound() {
  if (!WorthSpooling()) return;
  if ((!spool_.open() || !Spooling()) && !OpenSpool()) return StopSpooling();
  announcements_.SayNew(*sink_);
  SendPeriodic(/*last=*/false);
  SendEvents();
  if (Spooling()) SendFarewells();
  if (Spooling() && spool_.Commit() == FrameSink::Stored::kNever) StopSpooling();
}

void Sender::FinishInSpool(uint64_t deadline_ns) {
  spool_retry_at_ns_ = 0;
  delivery_.rings().Discover();
  if (!spool_.enabled() || peer_ == Peer::kRefused) return;
  if (delivery_.rings().Empty() && !spool_.open()) return;
  delivery_.rings().KeepChunks();
  if (!OpenSpool()) return;
  announcements_.SayNew(*sink_);
  SendPeriodic(/*last=*/true);
  while (Spooling() && !delivery_.rings().Empty() && NowNs() < deadline_ns) {
    delivery_.FlushNow();
    if (!SendEvents()) break;
  }
  // Full: what did not go in is missing between the frames and the accounts.
  delivery_.PutAccountsAtRest(spool_);
  const std::string goodbye = EncodeGoodbye();
  spool_.Put({.type = FrameType::kGoodbye}, std::as_bytes(std::span(goodbye)));
  (void)spool_.CommitLastWords();
}

bool Sender::Replay() {
  if (!replay_.Run(spool_, link_)) return false;
  replay_.Await(link_.frames_queued());
  return true;
}

void Sender::HandleFrames() {
  while (true) {
    const proto::FrameView frame = link_.NextFrame();
    if (frame.status == FrameStatus::kNeedMore) return;
    if (frame.status != FrameStatus::kComplete) {
      Log("the collector sent something that is not a frame");
      return Lost();
    }
    switch (frame.header.type) {
      case FrameType::kWelcome:
        if (const auto welcome = DecodeWelcome(frame.payload)) Greet(*welcome);
        if (!link_.connected()) return;
        break;
      case FrameType::kAck:
        if (const auto frames = DecodeAck(frame.payload)) HandleAck(*frames);
        break;
      case FrameType::kLevel:
        if (const auto order = DecodeLevelChange(frame.payload)) {
          levels_.Take(*order, NowNs(), ClockNs(CLOCK_REALTIME));
          ApplyDueLevel();
        }
        break;
      case FrameType::kCuptiTrial:
        setup_.on_cupti_trial(DecodeCuptiTrialResult(frame.payload));
        break;
      case FrameType::kFlight:
        if (const auto number = DecodeFlightRequest(frame.payload)) {
          setup_.on_flight_request(*number);
        }
        break;
      default:  // of a newer collector
        break;
    }
  }
}

void Sender::HandleAck(uint64_t frames) {
  silent_since_ns_ = NowNs();
  if (replay_.Acknowledge(frames)) {
    spool_.Remove();
    segment_.WriteSpooled(false);
  }
  anew_wait_ns_ = 0;
  delivery_.Acknowledge(frames);
}

void Sender::CloseInForkChild() {
  link_.CloseInForkChild();
  spool_.CloseInForkChild();
  readings_.CloseInForkChild();
}

}  // namespace ranktap::agent
