// The open sockets: whose are accepted, reading, flushing, closing. They know no session. Lives on
// the server's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/ingest/ingest_log.h"
#include "collector/ingest/net/closer.h"
#include "collector/ingest/net/connection.h"
#include "collector/ingest/net/event_loop.h"
#include "collector/ingest/net/frame_turns.h"
#include "collector/ingest/net/peer.h"
#include "collector/ingest/server_options.h"
#include "collector/ingest/user_memory.h"
#include "proto/frame.h"

namespace ranktap::collector {

class Connections {
 public:
  // Both may close connections, their own too. A closed one lives until the loop's call has
  // returned, and Find does not know it any more.
  struct Handlers {
    // A complete frame. False: it is not acceptable, and the connection is closed.
    std::function<bool(Connection*, const proto::FrameView&, std::span<const std::byte>)> on_frame;
    std::function<void(const Connection&)> on_closed;
  };

  // The objects behind the pointers outlive this. It accepts nobody before the loop runs.
  Connections(FileDescriptor listener, const ServerOptions* options, EventLoop* loop,
              IngestLog* log, Closer* closer, Handlers handlers);

  // Everybody who waits at the listener.
  void AcceptAll();
  void Admit(FileDescriptor socket, const PeerCredentials& peer);
  // Null: closed, or never there.
  Connection* Find(uint64_t id);

  // Reads what is in the socket. It may be closed by that.
  void Drain(Connection* connection);
  void DrainAll();
  // Writes what the socket takes. Closes it where it is of no more use, or where it is `closing`
  // and nothing is left to write.
  void Flush(Connection* connection);
  void Close(uint64_t id);

  // A session of the user's held `*before` and now holds `bytes`.
  void Account(uid_t user, uint64_t bytes, uint64_t* before) {
    memory_.Update(user, bytes, before);
  }
  bool IsFull(uid_t user) const { return memory_.IsFull(user); }

  // Each speaks for a session.
  bool all_greeted() const;

 private:
  bool IsServed(int socket, const PeerCredentials& peer);
  void OnNoHello(uint64_t id);
  void OnReady(uint64_t id, uint32_t events);
  // True: the socket has no more, or is closed.
  bool Read(Connection* connection, size_t budget);
  // What it holds of a frame is `bytes` now.
  void AccountHalfFrame(Connection* connection, uint64_t bytes);
  bool BeginFrame(uint64_t id);
  void Rewatch(EventLoop::Tag tag, uint32_t events);
  void ReadNothing(Connection* connection, uint32_t events);
  void ReadAgain(uid_t user);
  static uint32_t WantedEvents(const Connection& connection);

  const ServerOptions* options_;
  EventLoop* loop_;
  IngestLog* log_;
  Closer* closer_;
  Handlers handlers_;
  FileDescriptor listener_;
  EventLoop::Tag listener_tag_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> connections_;
  uint64_t last_id_ = 0;
  std::vector<std::byte> scratch_;
  UserMemory memory_;
  FrameTurns turns_;
};

}  // namespace ranktap::collector
