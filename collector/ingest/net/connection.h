// One socket of an agent: bytes in, checked frames out; control frames in, bytes out. Non-blocking;
// lives on the server's thread. A connection that breaks a rule is closed and hurts no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/ingest/net/closer.h"
#include "collector/ingest/net/peer.h"
#include "proto/frame.h"

namespace ranktap::collector {

class Connection {
 public:
  // `closer` outlives the connection, and closes the socket after it.
  Connection(FileDescriptor socket, uint64_t id, PeerCredentials peer, Closer* closer)
      : socket_(std::move(socket)), id_(id), peer_(peer), closer_(closer) {}
  ~Connection();

  enum class ReadStatus { kOpen, kClosed, kBadFrame };
  // Returns false to stop: the frame is not acceptable.
  using TakeFrame =
      std::function<bool(const proto::FrameView& frame, std::span<const std::byte> bytes)>;
  // Reads at most `budget` bytes through `scratch`, which every connection may share, and hands
  // over each complete frame. Where `others_wait`, it ends with the frame that it found begun.
  // `*drained` tells that the socket had no more.
  ReadStatus Read(std::span<std::byte> scratch, size_t budget, bool others_wait,
                  const TakeFrame& take, bool* drained);

  // Queues a frame; Flush sends what the socket takes. A peer that does not read is cut off when
  // too much is waiting. False: the connection is of no more use.
  [[nodiscard]] bool Send(std::span<const std::byte> frame);
  // The same where nothing else waits: an answer of any size.
  [[nodiscard]] bool SendReply(std::span<const std::byte> frame);
  // The cumulative ack: only the latest is ever waiting.
  [[nodiscard]] bool SendAck(uint64_t frames);
  [[nodiscard]] bool Flush();
  bool wants_to_write() const { return !output_.empty() || ack_ != acked_; }

  // The descriptor that was passed. A peer that passes a second one is closed.
  FileDescriptor TakeDescriptor() { return std::move(descriptor_); }

  int fd() const { return socket_.get(); }
  uint64_t id() const { return id_; }
  const PeerCredentials& peer() const { return peer_; }
  // Complete frames so far, the hello included: what acks count.
  uint64_t frames() const { return frames_; }
  const std::string& problem() const { return problem_; }

  bool has_half_frame() const { return !input_.empty(); }
  // Memory that an incomplete frame takes.
  uint64_t held_bytes() const { return input_.capacity(); }

  // As UserMemory has it.
  uint64_t accounted = 0;
  // Not read, since its user is at the bound.
  bool paused = false;
  // Not read, since others of its user are in the middle of frames; it has been given its turn.
  bool waits_for_turn = false, has_turn = false;
  // The event loop's for the socket; 0: not watched.
  uint64_t tag = 0;
  // The session that it speaks for; 0 before the hello.
  uint64_t session = 0;
  // Set once the welcome (or the refusal) is on its way; no level is sent before.
  bool welcomed = false;
  // Its request is being worked on: it has no session, and is in time.
  bool is_answered_later = false;
  // To be closed when the output is flushed.
  bool closing = false;

 private:
  [[nodiscard]] ssize_t Receive(std::span<std::byte> into);
  void TakePassed(int fd);
  ReadStatus TakeFrames(std::span<const std::byte> bytes, const TakeFrame& take, size_t* used);

  FileDescriptor socket_;
  uint64_t id_;
  PeerCredentials peer_;
  Closer* closer_;
  FileDescriptor descriptor_;
  bool passed_ = false;           // it has passed one
  bool passed_too_many_ = false;  // and another
  std::vector<std::byte> input_;  // an incomplete frame; at most one
  size_t frame_bytes_ = 0;        // of that frame, once its header is there; 0: not known
  std::vector<std::byte> output_;
  uint64_t frames_ = 0;
  uint64_t ack_ = 0;    // to be told
  uint64_t acked_ = 0;  // encoded into output_
  std::string problem_;
};

}  // namespace ranktap::collector
