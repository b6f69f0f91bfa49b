// The things that a dead process left in its rings: events behind the stored position of each
// writer, names that no frame had carried yet, the writers' own counters, and the calls they were
// inside of.
//
//   stored in the trace:   writer 7 up to event 1,200
//   chunks of the segment: [900, 1,150)      stored already, left alone
//                          [1,150, 1,400)    events 1,200 to 1,399 become a frame
//                          [1,500, 1,600)    1,400 to 1,499 are declared lost, then a frame
//                          [1,600, 1,610)    1,604 is not an event: a frame of 4, the rest is lost
//   writer 7's account:    produced 1,611: 1,610 placed, and one that death cut short
//
// The segment was written by a hostile or dying process: everything is copied before it is looked
// at, every size and index in the copy is checked, and no index of the segment decides how far we
// go. Events that cannot be decoded are declared lost with their positions. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collector/file/trace_state.h"
#include "collector/ingest/recovery/ring_accounts.h"
#include "collector/ingest/recovery/ring_names.h"
#include "collector/ingest/recovery/segment.h"
#include "proto/frame.h"
#include "proto/ring.h"

namespace ranktap::collector {

class RingRecovery {
 public:
  // Takes each frame in the order in which it must be stored.
  using TakeFrame =
      std::function<void(const proto::FrameFields& fields, std::span<const std::byte> payload)>;

  // `state`: what has been stored so far; the frames given to `take` must be noted in it by then.
  RingRecovery(const Segment& segment, const TraceState& state, TakeFrame take);

  // `process_is_dead`: else the counters are still moving, and calls still open are no news.
  // False when the segment is not one that this build can read; `problem()` says why.
  [[nodiscard]] bool Run(bool process_is_dead);
  const std::string& problem() const { return problem_; }
  uint64_t events() const { return events_; }
  uint64_t lost() const { return lost_; }
  // The agent was told that the process ends, and left everything in order.
  bool said_last_words() const { return said_last_words_; }

 private:
  struct ChunkInfo {
    uint32_t block;
    uint32_t blocks;
    uint32_t writer;
    uint64_t first_event;
    uint64_t end_event;
  };

  [[nodiscard]] bool ReadHeader();
  void SendNewEntries();
  std::vector<ChunkInfo> ListChunks();
  std::optional<ChunkInfo> ChunkAt(uint32_t block) const;
  void DrainWriter(uint32_t writer, std::span<const ChunkInfo> chunks);
  void DrainChunk(const ChunkInfo& info, uint64_t* next);
  void SendEvents(uint32_t writer, uint64_t first, const std::string& payload, uint32_t events);
  void DeclareLost(uint32_t writer, uint64_t first, uint64_t events);
  void ReadLastWords(const proto::LastWords& words);
  void ReadRank(const proto::LastWords& words);

  // A frame of a serialised message; none where it is empty.
  void Send(proto::FrameType type, const std::string& payload);

  const Segment& segment_;
  const TraceState& state_;
  TakeFrame take_;
  RingAccounts accounts_;
  RingNames names_;
  std::string problem_;
  uint64_t events_ = 0;
  uint64_t lost_ = 0;
  bool said_last_words_ = false;
  std::string rank_;        // v1.Hello with the rank alone; empty: none but the known one
  std::string last_clock_;  // v1.ClockReadings; empty: none, or half written
  proto::SegmentLayout layout_{};
  uint32_t groups_ = 0;
  std::vector<std::byte> chunk_;
};

}  // namespace ranktap::collector
