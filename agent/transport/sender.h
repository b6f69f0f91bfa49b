// The agent's thread: takes events out of the rings, encodes them, sends them, gives ring space
// back when the collector has them on disk. Keeps trying while there is no collector; meanwhile the
// frames go into the spool, and the spool to the next collector before anything new. Events that
// neither takes stay in the rings, which count what they cannot hold. Runs on: a thread of its own,
// started by Start. May not: call CUPTI, CUDA or the loader.
#pragma once

#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "agent/core/arena.h"
#include "agent/core/own_thread.h"
#include "agent/core/segment.h"
#include "agent/transport/backoff.h"
#include "agent/transport/collector_link.h"
#include "agent/transport/file_spool.h"
#include "agent/transport/frame_sink.h"
#include "agent/transport/level_schedule.h"
#include "agent/transport/messages.h"
#include "agent/transport/periodic_readings.h"
#include "agent/transport/ring_delivery.h"
#include "agent/transport/said_announcements.h"
#include "agent/transport/spool_replay.h"

namespace ranktap::agent {

class Sender {
 public:
  struct Setup {
    std::string socket_path;
    std::string hello;  // v1.Hello, encoded
    FileSpool::Setup spool;
    // Called on the sender's thread at the instant for which the collector has ordered a level.
    std::function<void(const LevelOrder&)> on_level;
    // Called on the sender's thread with what the collector says of a CUPTI that it has tried.
    std::function<void(proto::TrialOutcome)> on_cupti_trial;
    // Called on the sender's thread where the collector wants the Flight Recorder's dump.
    std::function<void(uint64_t request)> on_flight_request;
    // Called on the sender's thread about once a second, and at the end on the thread that ends.
    std::function<void()> on_beat;
    // Asked on the sender's thread before each round; false ends the thread. Empty: it never ends.
    std::function<bool()> goes_on;
    // Filled in by the sources; nothing of ours is known here but sender and frame figures.
    std::function<void(CostFields&)> add_cost;
  };

  // Reserves what rounds use: in steady state they allocate nothing. If memory is refused all the
  // same, the sender begins a round anew, on another connection; the rings still hold what no sink
  // has taken.
  Sender(Segment& segment, const Arena& arena, Setup setup);

  // Connects and greets, without waiting. Before Start, or on the thread.
  void TryConnect();

  // Starts the thread; again only after its end. False: the system gives us none.
  [[nodiscard]] bool Start();

  // One round of the loop, for tests and for Start's thread.
  void RunOnce();
  bool GoesOn() {
    seen_wakes_ = wakes_.load();
    return !setup_.goes_on || setup_.goes_on();
  }
  // From any thread: asks goes_on again now, unless the thread is at a conversation (10 ms then).
  void Wake();

  // Takes the thread's work over and sends what has been announced and not yet sent, until
  // `deadline_ns` (CLOCK_MONOTONIC) at the latest. Without a collector nobody else holds the rings:
  // they are emptied into the spool, until `spool_deadline_ns`. The thread does nothing from then
  // on. Runs on: the exiting thread.
  void Finish(uint64_t deadline_ns, uint64_t spool_deadline_ns);

  // In a fork child: closes the child's copy of the descriptors and nothing else.
  void CloseInForkChild();

 private:
  // Whom we have at the other end. The sink (below) says where frames go.
  enum class Peer : uint8_t {
    // There is no connection. To kGreeting when one is made; meanwhile SpoolRound.
    kNone,
    // There is a connection, with Hello as its only frame; still SpoolRound. To kReplaying or kLive
    // by a Welcome, to kRefused by one that refuses for good; to kNone by one that refuses for now,
    // when it breaks, or after kGreetingTimeout.
    kGreeting,
    // The collector has welcomed us and takes the spool's frames before anything new. To kLive
    // after the last one; to kNone when the connection breaks, or the collector IsDeaf.
    kReplaying,
    // The collector takes what the rings hold. To kNone as before. In this state and the one
    // before, another Welcome counts as in kGreeting.
    kLive,
    // A collector has told us never to come back: we neither connect nor spool. The end.
    kRefused,
  };

  bool Greeted() const { return peer_ == Peer::kReplaying || peer_ == Peer::kLive; }
  bool Spooling() const { return sink_ == &spool_; }
  void Greet(const Welcome& welcome);
  void Refuse(const Welcome& welcome);
  void Lost();
  // Everything unacknowledged is unsent, and nothing has been told to whoever comes next.
  void StartOver();
  // Memory was refused in the midst of a round.
  void StartAnew();
  // Goes on with the spool there is, or with the next one. False: nothing was told to it.
  bool OpenSpool();
  // The rest of a round without a collector.
  void SpoolRound();
  bool WorthSpooling();
  bool RingsFillUp() const { return segment_.LentBlocks() > segment_.AllBlocks() / 2; }
  // It acknowledges nothing, and the rings will not hold what is to come.
  bool IsDeaf();
  void StopSpooling();
  void FinishInSpool(uint64_t deadline_ns);
  void FinishWith(uint64_t deadline_ns, uint64_t spool_deadline_ns);
  // The spool's frames to a new collector. False: there are more.
  bool Replay();
  void HandleFrames();
  void ApplyDueLevel();
  // Until the peer has something that cannot wait, Wake is called, `wait_ms` have passed, or a
  // level is due.
  void WaitForWork(pollfd* peer, int wait_ms, uint64_t level_due_ns);
  void HandleAck(uint64_t frames);
  // Returns for how many milliseconds there is nothing to do.
  int RunRound();
  void SendPeriodic(bool last);
  // As the rings' delivery; a spool that refuses is not the sink any more.
  bool SendEvents();
  void SendFarewells();
  void Heed(const RingDelivery::Sent& sent);

  Segment& segment_;
  Setup setup_;
  CollectorLink link_;
  FileSpool spool_;
  SpoolReplay replay_;
  RingDelivery delivery_;
  SaidAnnouncements announcements_;
  PeriodicReadings readings_;
  LevelSchedule levels_;
  std::atomic<Peer> peer_{Peer::kNone};  // Finish reads it before it holds round_
  // Frames go here; all that counts as told was told there. A greeting that comes to nothing leaves
  // it the spool: only a Welcome makes it the link.
  FrameSink* sink_ = &link_;
  uint64_t silent_since_ns_ = 0;  // no collector has acknowledged what there was
  uint64_t spool_retry_at_ns_ = 0;
  Backoff reconnect_;          // while a greeting is awaited, its end
  uint64_t anew_wait_ns_ = 0;  // grows while memory is refused again and again
  uint64_t last_event_ns_ = 0;
  std::atomic<uint32_t> wakes_{0};
  uint32_t seen_wakes_ = 0;  // before goes_on was asked
  OwnThread thread_;
  // Held while a round runs, so that the exiting thread can take over between two.
  pthread_mutex_t round_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace ranktap::agent
