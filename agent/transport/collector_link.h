// The socket to the collector: connects, sends whole frames in pieces, receives frames. Never
// blocks longer than asked to; a broken link is dropped and made anew by the caller. Runs on: the
// sender thread.  May not: log to the job, raise SIGPIPE, write to a descriptor that is no longer
// ours.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/core/own_descriptor.h"
#include "agent/transport/frame_sink.h"
#include "proto/frame.h"

namespace ranktap::agent {

class CollectorLink final : public FrameSink {
 public:
  // Reserves what is queued and received between two calls: nothing more is allocated for frames
  // that come one by one.
  CollectorLink();
  ~CollectorLink() { Drop(); }

  // Connects to the Unix socket at `path`. Refuses a server that is not trusted (server_trust.h).
  // False: not now; errno says why.
  [[nodiscard]] bool Connect(const std::string& path);
  bool connected() const { return connected_; }
  void Drop();
  // Async-signal-safe: closes the child's copy of the descriptor.
  void CloseInForkChild();

  // FrameSink. A frame is sent by the next Exchange, committed or not; Commit is always kOnAck.
  void Put(const proto::FrameFields& fields, std::span<const std::byte> payload) override;
  [[nodiscard]] Stored Commit() override { return Stored::kOnAck; }
  bool IsBehind() const override { return unsent_bytes() >= kMaxQueuedBytes; }

  // As Put; `descriptor` goes with the frame's first byte.
  void PutWithDescriptor(const proto::FrameFields& fields, std::span<const std::byte> payload,
                         int descriptor);
  // Frames put on this connection so far: what the collector's acks count.
  uint64_t frames_queued() const { return frames_queued_; }
  // On this connection, and on none after it is counted.
  uint64_t bytes_sent() const { return bytes_sent_; }
  void ForgetCounts() { frames_queued_ = bytes_sent_ = 0; }
  size_t unsent_bytes() const { return out_.size() - sent_; }

  // The events to poll for: something to receive, or room to send what is unsent.
  pollfd WaitingFor() const;
  // Sends what fits and receives what is there, without waiting. False: the link broke and is
  // dropped.
  [[nodiscard]] bool Exchange();

  // The next whole frame that was received, or kNeedMore. Its payload is valid until the next
  // Exchange. Anything else means: Drop.
  proto::FrameView NextFrame();

 private:
  static constexpr size_t kMaxQueuedBytes = 1 << 20;

  bool SendSome(int fd);
  bool ReceiveSome(int fd);

  OwnDescriptor socket_;
  bool connected_ = false;
  std::string out_;  // frames, back to back
  size_t sent_ = 0;
  int pass_fd_ = -1;
  std::vector<std::byte> in_;
  size_t parsed_ = 0;
  uint64_t frames_queued_ = 0;
  uint64_t bytes_sent_ = 0;
};

}  // namespace ranktap::agent
