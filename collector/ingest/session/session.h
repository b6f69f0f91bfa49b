// One process image as ingest sees it: which positions have come, which block is open, whether the
// process lives. Outlives its connections. Lives on the server's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collector/ingest/limits.h"
#include "collector/ingest/net/peer.h"
#include "collector/ingest/recovery/segment.h"
#include "collector/ingest/session/session_ledger.h"
#include "collector/ingest/store/frame_block.h"
#include "collector/ingest/store/trace_store.h"
#include "collector/live/live_rank.h"
#include "proto/frame.h"
#include "ranktap/v1/control.pb.h"

namespace ranktap::collector {

class Session {
 public:
  Session(SessionId id, const v1::Hello& hello, PeerCredentials peer, FileDescriptor pidfd)
      : id_(id),
        token_(hello.session()),
        peer_(peer),
        pidfd_(std::move(pidfd)),
        hello_bytes_(hello.ByteSizeLong()),
        ledger_(hello),
        live_(hello.host_clock()) {}

  // A new connection speaks for this session now.
  void Attach(uint64_t connection, uint64_t frames) {
    connection_ = connection;
    connection_frames_ = frames;
    seen_.clear();
  }
  void Detach() { connection_ = 0; }
  // Each writer's next position, as far as an earlier collector has stored.
  void Seed(const std::vector<std::pair<uint32_t, uint64_t>>& positions) {
    for (const auto& [writer, next] : positions) {
      uint64_t& known = next_event_[writer];
      known = std::max(known, next);
    }
  }
  uint64_t connection() const { return connection_; }

  enum class Verdict { kTaken, kDuplicate, kViolation };
  // Checks a complete frame of the attached connection and puts it into the open block.
  //
  // A writer's positions must follow each other. It skips what is known already; a jump ahead is
  // possible only in the first frame of a writer on a connection, where the process has kept what
  // lies between elsewhere (its spool, another collector). Where that is gone, it says so first by
  // a frame of lost positions. `live`: somebody wants to know what the rank does now.
  Verdict Accept(const proto::FrameView& frame, std::span<const std::byte> bytes, uint64_t now_ns,
                 const IngestLimits& limits, std::string* why, LiveColumns* live = nullptr);
  // A frame of our own making.
  void Add(const proto::FrameFields& fields, std::span<const std::byte> payload, uint64_t now_ns);

  bool has_open_block() const { return block_open_; }
  uint64_t block_number() const { return block_number_; }
  uint64_t open_bytes() const { return block_.size; }
  bool block_is_full() const { return block_.size >= kBlockBytes; }
  // The open block, which goes to the store.
  FrameBlock TakeBlock();
  // Frames of the attached connection that the taken block ends with.
  uint64_t connection_frames() const { return connection_frames_; }

  SessionId id() const { return id_; }
  const std::string& token() const { return token_; }
  const PeerCredentials& peer() const { return peer_; }
  int pidfd() const { return pidfd_.get(); }
  SessionLedger& ledger() { return ledger_; }
  const SessionLedger& ledger() const { return ledger_; }
  LiveRank& live() { return live_; }
  const LiveRank& live() const { return live_; }
  uint64_t tag = 0;  // the event loop's for the pidfd; 0: not watched
  std::shared_ptr<const Segment> segment;
  std::string run;      // its directory; empty until the store has found one
  uint64_t window = 0;  // the last one it was told of; 0: none
  struct DeferredLevel {
    v1::LevelChange change;
    uint64_t ordered_ns;  // CLOCK_REALTIME
  };
  uint64_t stored_memory = 0;  // what the store holds of it, as it last said
  uint64_t accounted = 0;      // as UserMemory has it
  KeptAmount kept;             // as the store last said
  // About what it takes of memory, here and in the store.
  uint64_t MemoryBytes() const;

  std::optional<DeferredLevel> deferred;  // ordered before its run was known

  uint32_t trials = 0;  // of a CUPTI, that it asked for
  bool said_goodbye = false;
  bool is_dead = false;      // by pidfd
  bool is_closing = false;   // given to the store; its file is being closed
  bool is_closed = false;    // its file is closed and nothing has come since
  uint64_t detached_at = 0;  // when its last connection ended; 0: attached
  std::string end;           // how the process ended, where known

 private:
  void OpenBlock() {
    if (block_open_) return;
    block_open_ = true;
    ++block_number_;
  }
  void NoteNames(std::span<const std::byte> dictionary);
  [[nodiscard]] bool CheckControl(const proto::FrameView& frame, std::string* why) const;
  // A frame with the positions [first, end) of a writer, as events or as lost.
  Verdict CheckPositions(uint32_t writer, uint64_t first, uint64_t end, const IngestLimits& limits,
                         std::string* why);
  Verdict CheckLoss(const proto::FrameView& frame, const IngestLimits& limits, std::string* why);

  SessionId id_;
  std::string token_;
  PeerCredentials peer_;
  FileDescriptor pidfd_;
  uint64_t connection_ = 0;
  uint64_t connection_frames_ = 0;
  std::unordered_map<uint32_t, uint64_t> next_event_;
  std::unordered_set<uint32_t> seen_;  // writers on this connection
  size_t hello_bytes_;
  size_t dictionary_bytes_ = 0;
  size_t amended_bytes_ = 0;
  SessionLedger ledger_;
  LiveRank live_;
  FrameBlock block_;
  bool block_open_ = false;
  uint64_t block_number_ = 0;
};

}  // namespace ranktap::collector
