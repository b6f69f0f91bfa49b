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
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/core/agent_config.h"
#include "agent/core/announcements.h"
#include "agent/core/arena.h"
#include "agent/core/own_thread.h"
#include "agent/core/resident_memory.h"
#include "agent/core/segment.h"
#include "agent/transport/collector_link.h"
#include "agent/transport/dictionary.h"
#include "agent/transport/file_spool.h"
#include "agent/transport/fixed_queue.h"
#include "agent/transport/frame_sink.h"
#include "agent/transport/level_schedule.h"
#include "agent/transport/messages.h"
#include "agent/transport/ring_reader.h"

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
  ~Sender();

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
    // There is a connection, with Hello as its only frame. To kReplaying or kLive by a Welcome, to
    // kRefused by one that refuses for good; to kNone by one that refuses for now, when it breaks,
    // or after kGreetingTimeout.
    kGreeting,
    // The collector has welcomed us and takes the spool's frames before anything new. To kLive
    // after the last one; to kNone when the connection breaks.
    kReplaying,
    // The collector takes what the rings hold. To kNone when the connection breaks. In this state
    // and the one before, another Welcome counts as in kGreeting.
    kLive,
    // A collector has told us never to come back: we neither connect nor spool. The end.
    kRefused,
  };

  // The data that ring space waits for: a run of events, or the end of a writer.
  struct InFlight {
    uint32_t slot;
    uint64_t next_event;  // acknowledges the slot's events below this
    bool farewell;        // the writer's final account: the slot can go
    uint32_t writer;
    uint64_t first_event;
    uint64_t frame;  // number on this connection
  };
  static constexpr size_t kMostInFlight = 16 << 10;

  bool Greeted() const { return peer_ == Peer::kReplaying || peer_ == Peer::kLive; }
  bool Spooling() const { return sink_ == &spool_; }
  void Greet(const Welcome& welcome);
  void Refuse(const Welcome& welcome);
  void Lost();
  // Everything unacknowledged is unsent, and nothing has been told to whoever comes next.
  void StartOver();
  // Memory was refused in the midst of a round.
  void StartAnew();
  // One frame without events, to the sink.
  void Put(proto::FrameType type, std::string_view payload);
  // The same, with what `append(bytes)` adds to an empty string.
  template <typename Append>
  void PutMessage(proto::FrameType type, Append&& append) {
    message_.clear();
    append(message_);
    Put(type, message_);
  }
  // Commits the sink and gives ring space back when it may. False: the sink did not take what was
  // put, and is not the sink any more.
  bool Commit(InFlight sent);
  void GiveBack(const InFlight& done);
  // Declares lost, to the sink, the events that were given back for the sake of a spool and that no
  // spool has any more. Again for each sink, until a collector has acknowledged it.
  void DeclareGone();
  // Goes on with the spool there is, or with the next one. False: nothing was told to it.
  bool OpenSpool();
  // The rest of a round without a collector.
  void SpoolRound();
  bool WorthSpooling();
  void StopSpooling();
  void FinishInSpool(uint64_t deadline_ns);
  void AppendAccountAtRest(uint32_t slot, std::string& accounts);
  void FinishWith(uint64_t deadline_ns, uint64_t spool_deadline_ns);
  // Frames of the spool to a new collector. False: there are more.
  bool Replay();
  void HandleFrames();
  void ApplyDueLevel();
  // Until the peer has something that cannot wait, Wake is called, `wait_ms` have passed, or a
  // level is due.
  void WaitForWork(pollfd* peer, int wait_ms, uint64_t level_due_ns);
  void HandleAck(uint64_t frames);
  void SendAnnouncements();
  // Returns for how many milliseconds there is nothing to do.
  int RunRound();
  void SendPeriodic(bool last);
  bool SendEvents();
  // False: as Commit.
  bool SendBatch(const RingReader::Batch& batch);
  void SendFarewells();

  Segment& segment_;
  Setup setup_;
  CollectorLink link_;
  FileSpool spool_;
  ResidentMemoryReader memory_;
  RingReader reader_;
  Dictionary dictionary_;
  LevelSchedule levels_;
  proto::EventEncoder encoder_;
  std::string payload_, message_;
  FixedQueue<InFlight> in_flight_{kMostInFlight};
  // First the announcements to say again to a later collector, then those not said yet.
  Announcement* announced_ = nullptr;
  Announcement** unsaid_ = &announced_;
  std::atomic<Peer> peer_{Peer::kNone};  // Finish reads it before it holds round_
  // Frames go here; all that counts as told was told there. A greeting that comes to nothing leaves
  // it the spool: only a Welcome makes it the link.
  FrameSink* sink_ = &link_;
  uint64_t alone_since_ns_ = 0;  // no collector has greeted us, or it is gone
  uint64_t spool_retry_at_ns_ = 0;
  uint64_t replay_offset_ = 0;
  uint64_t replayed_by_frame_ = 0;  // the spool is acknowledged with this frame; 0: no spool
  std::unordered_map<uint32_t, uint64_t> stored_;  // Welcome.positions, for the replay
  // By writer, what no collector has acknowledged and the rings have no more: only the spool has
  // it, or nobody.
  struct Spooled {
    uint64_t first, next;
  };
  std::unordered_map<uint32_t, Spooled> spooled_;
  uint64_t retry_at_ns_ = 0;
  uint64_t retry_wait_ns_ = 0;
  uint64_t anew_wait_ns_ = 0;  // grows while memory is refused again and again
  uint64_t flush_at_ns_ = 0;
  uint64_t cpu_ns_ = 0;  // of the thread, at its last round
  uint64_t periodic_at_ns_ = 0;
  uint64_t last_event_ns_ = 0;
  uint64_t frames_total_ = 0;
  uint64_t bytes_total_ = 0;
  uint64_t writers_seen_ = 0;
  uint32_t clock_readings_ = 0;
  std::atomic<uint32_t> wakes_{0};
  uint32_t seen_wakes_ = 0;  // before goes_on was asked
  OwnThread thread_;
  // Held while a round runs, so that the exiting thread can take over between two.
  pthread_mutex_t round_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace ranktap::agent
