// The sender's loop.
// Runs on: the sender thread.  May not: call CUPTI, CUDA or the loader; raise signals in the job.
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
      reader_(segment),
      dictionary_(segment, arena),
      alone_since_ns_(NowNs()) {
  // Columns are at most about as long as what they are made of.
  constexpr size_t kPayloadBytes = 512 << 10, kMessageBytes = 4 << 10;
  encoder_.Reserve(RingReader::kMostEvents);
  payload_.reserve(kPayloadBytes);
  message_.reserve(kMessageBytes);
}

Sender::~Sender() {
  while (announced_ != nullptr) delete std::exchange(announced_, announced_->next);
}

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
  // Here and not with the last costs: those are told on a thread of the program's.
  cpu_ns_ = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  // A program that used up what was there may go on at that rate.
  constexpr int kGrowingPollMs = 1;
  const bool grew = segment_.Grow();
  ApplyDueLevel();
  if (peer_ == Peer::kNone && NowNs() >= retry_at_ns_) TryConnect();
  bool busy = false;
  switch (peer_.load()) {
    case Peer::kNone:
      SpoolRound();
      return grew ? kGrowingPollMs : kIdlePollMs;
    case Peer::kRefused:
      return kIdlePollMs;
    case Peer::kGreeting:
      if (NowNs() < retry_at_ns_) break;
      Lost();
      return kIdlePollMs;
    case Peer::kReplaying:
      busy = true;
      if (Replay()) peer_ = Peer::kLive;
      break;
    case Peer::kLive:
      SendAnnouncements();
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
  encoder_.Clear();
  spool_.Discard();
  if (!HadMemory(finish)) Log("no memory for the last words");
}

void Sender::FinishWith(uint64_t deadline_ns, uint64_t spool_deadline_ns) {
  if (!link_.connected()) return FinishInSpool(spool_deadline_ns);
  bool told = false;
  while (link_.connected() && NowNs() < deadline_ns) {
    if (Greeted() && !std::exchange(told, true)) {
      SendAnnouncements();
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
  retry_wait_ns_ = retry_wait_ns_ == 0 ? kFirstRetry : std::min(2 * retry_wait_ns_, kLongestRetry);
  // Ranks that lose one collector together must not come back together.
  const uint64_t jitter = (NowTicks() >> 4) % (retry_wait_ns_ / 4);
  retry_at_ns_ = NowNs() + retry_wait_ns_ + jitter;
  if (!link_.Connect(setup_.socket_path)) return;
  peer_ = Peer::kGreeting;
  retry_at_ns_ = NowNs() + kGreetingTimeout;
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
  retry_wait_ns_ = 0;
  StartOver();
  sink_ = &link_;
  stored_.clear();
  for (const auto& [writer, next_event] : welcome.positions) {
    reader_.SkipTo(writer, next_event);
    stored_[writer] = next_event;
  }
  peer_ = spool_.open() || !spooled_.empty() ? Peer::kReplaying : Peer::kLive;
  replay_offset_ = 0;
  replayed_by_frame_ = 0;
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
  retry_at_ns_ = NowNs() + welcome.retry_after_ms * kMillisecond;
}

void Sender::Lost() {
  frames_total_ += link_.frames_queued();
  bytes_total_ += link_.bytes_sent();
  link_.ForgetCounts();
  link_.Drop();
  if (Greeted()) alone_since_ns_ = NowNs();
  peer_ = Peer::kNone;
  replayed_by_frame_ = 0;
  retry_at_ns_ = NowNs() + kFirstRetry;
}

void Sender::StartAnew() {
  Log("no memory for a round of the sender: it begins anew");
  anew_wait_ns_ = std::clamp(2 * anew_wait_ns_, kFirstRetry, kLongestRetry);
  encoder_.Clear();
  if (Spooling()) {
    StopSpooling();
  } else {
    Lost();
  }
  retry_at_ns_ = spool_retry_at_ns_ = NowNs() + anew_wait_ns_;
}

void Sender::StartOver() {
  for (size_t i = 0; i < in_flight_.size(); ++i) {
    const InFlight& sent = in_flight_[i];
    if (!sent.farewell) reader_.KeepBound(sent.slot, sent.next_event);
  }
  in_flight_.clear();
  unsaid_ = &announced_;
  dictionary_.Forget();
  reader_.Rewind();
}

void Sender::Put(FrameType type, std::string_view payload) {
  sink_->Put({.type = type}, std::as_bytes(std::span(payload)));
}

bool Sender::Commit(InFlight sent) {
  switch (sink_->Commit()) {
    case FrameSink::Stored::kNow:
      if (!sent.farewell) spooled_.find(sent.writer)->second.next = sent.next_event;
      anew_wait_ns_ = 0;
      GiveBack(sent);
      return true;
    case FrameSink::Stored::kOnAck:
      sent.frame = link_.frames_queued();
      in_flight_.push_back(sent);
      return true;
    case FrameSink::Stored::kNever:
      break;
  }
  StopSpooling();
  return false;
}

void Sender::GiveBack(const InFlight& done) {
  if (done.farewell) {
    reader_.Release(done.slot);
  } else {
    reader_.Acknowledge(done.slot, done.next_event);
  }
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
      default:  // the others are of a newer collector
        if (frame.header.type == proto::kCuptiTrial) {
          setup_.on_cupti_trial(DecodeCuptiTrialResult(frame.payload));
        }
        break;
    }
  }
}

void Sender::HandleAck(uint64_t frames) {
  if (replayed_by_frame_ != 0 && frames >= replayed_by_frame_) {
    spool_.Remove();
    spooled_.clear();
    replayed_by_frame_ = 0;
  }
  anew_wait_ns_ = 0;
  while (!in_flight_.empty() && in_flight_.front().frame <= frames) {
    GiveBack(in_flight_.front());
    in_flight_.pop_front();
  }
}

void Sender::CloseInForkChild() {
  link_.CloseInForkChild();
  spool_.CloseInForkChild();
  memory_.CloseInForkChild();
}

}  // namespace ranktap::agent
