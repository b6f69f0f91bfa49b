// From the rings to a sink: encodes runs of events, tells the names they need first, and gives ring
// space back when the sink says that it may go.
// Runs on: the sender thread; at exit the exiting thread.  May not: be used from two threads,
// allocate in steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/core/arena.h"
#include "agent/core/segment.h"
#include "agent/transport/collector_link.h"
#include "agent/transport/dictionary.h"
#include "agent/transport/fixed_queue.h"
#include "agent/transport/frame_sink.h"
#include "agent/transport/messages.h"
#include "agent/transport/ring_reader.h"
#include "agent/transport/spool_replay.h"

namespace ranktap::agent {

class RingDelivery {
 public:
  // A sink other than `link` is a spool; `replay` is told what it takes.
  RingDelivery(Segment& segment, const Arena& arena, const CollectorLink& link,
               SpoolReplay& replay);

  RingReader& rings() { return reader_; }
  // The collector has so much already, and wants names again every now and then.
  void Begin(const Welcome& welcome);
  uint64_t writers_seen() const { return writers_seen_; }

  struct Sent {
    bool any = false;
    bool refused = false;  // the sink did not take what was put
  };
  Sent SendEvents(FrameSink& sink);
  bool awaits_ack() const { return !in_flight_.empty(); }
  // Events go out by the next call whatever their age and number.
  void FlushNow() { flush_at_ns_ = 0; }
  Sent SendFarewells(FrameSink& sink);
  // The final account of each writer.
  void PutAccountsAtRest(FrameSink& sink);

  // The collector has stored so many frames of the connection.
  void Acknowledge(uint64_t frames);
  // Everything unacknowledged is unsent, and nothing has been told to whoever comes next.
  void StartOver();
  // Memory was refused in the midst of a batch: it is unsent.
  void DropBatch() { encoder_.Clear(); }

 private:
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

  bool IsSpool(const FrameSink& sink) const { return &sink != &link_; }
  // One frame without events, of what `append(bytes)` adds to an empty string.
  template <typename Append>
  void PutMessage(FrameSink& sink, proto::FrameType type, Append&& append);
  // Commits the sink and gives ring space back when it may. False: the sink did not take what was
  // put.
  bool Commit(FrameSink& sink, InFlight sent);
  void GiveBack(const InFlight& done);
  bool SendBatch(FrameSink& sink, const RingReader::Batch& batch);
  void TellAgain(FrameSink& sink);
  void AppendAccountAtRest(uint32_t slot, std::string& accounts);

  Segment& segment_;
  const CollectorLink& link_;
  SpoolReplay& replay_;
  RingReader reader_;
  Dictionary dictionary_;
  proto::EventEncoder encoder_;
  std::string payload_, message_;
  FixedQueue<InFlight> in_flight_{kMostInFlight};
  uint64_t flush_at_ns_ = 0;
  uint64_t tell_again_every_ns_ = 0, tell_again_at_ns_ = 0;  // 0: never
  bool tells_again_ = false;
  uint64_t writers_seen_ = 0;
};

}  // namespace ranktap::agent
