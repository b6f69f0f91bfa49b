// Reads the rings for the sender: what of each writer is not sent yet, and which chunks can go back
// once it is acknowledged. Knows positions and chunks; knows nothing of sockets.
// Runs on: the sender thread.  May not: be used from two threads, allocate once it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/core/segment.h"
#include "proto/encode.h"
#include "proto/ring.h"

namespace ranktap::agent {

class RingReader {
 public:
  explicit RingReader(Segment& segment);

  static constexpr uint32_t kMostEvents = 8192;  // of a batch
  // A run of events that lie in one chunk.
  struct Batch {
    uint32_t slot;
    uint32_t writer;
    uint64_t first_event;
    uint32_t events;
  };

  // Looks for writers that have begun since the last call.
  void Discover();

  // The next unsent run of some writer, added to `encoder`, which must be empty; nothing when every
  // writer has less than `min_bytes` in an unfinished chunk. Fair: goes round the writers. The
  // encoder's pointers stay good until the batch is acknowledged.
  std::optional<Batch> TakeBatch(size_t min_bytes, proto::EventEncoder& encoder);

  // Everything of the slot's writer below `next_event` is stored: chunks that lie below it go back
  // to the pool.
  void Acknowledge(uint32_t slot, uint64_t next_event);

  // From now on acknowledged chunks keep their place: the process ends and needs no room, and a
  // collector that has the memfd reads there what else only a spool has.
  void KeepChunks() { keeps_chunks_ = true; }

  // A batch of the slot's writer that ended here was sent and is not acknowledged: sent again, it
  // ends here again, so that whoever has stored some of the frames has stored whole ones.
  void KeepBound(uint32_t slot, uint64_t next_event);
  // A new connection: everything not acknowledged is unsent again.
  void Rewind();
  // The collector's word about what it has already (Welcome.positions).
  void SkipTo(uint32_t writer, uint64_t next_event);

  // Slots whose writer has ended and whose events are all acknowledged. The caller says goodbye for
  // the writer, then calls Release.
  const std::vector<uint32_t>& FinishedSlots();
  void Release(uint32_t slot);

  // True when nothing is unsent or unacknowledged.
  bool Empty() const;
  // Events committed by the slot's writer so far.
  uint64_t Committed(uint32_t slot) const;
  // True once for each writer since the last Rewind: its name has to be told.
  bool Introduce(uint32_t slot);

 private:
  // Chunks are known by the index of their first block and one more, 0 is none. The reader keeps a
  // chunk's facts here, since the program may write over the chunk.
  struct Held {
    uint64_t first_event;
    uint32_t capacity;  // 0: not held
    uint32_t next;      // of the same writer
  };
  struct Cursor {
    uint32_t writer = 0;  // 0: no writer known in this slot
    bool damaged = false;
    bool introduced = false;
    bool farewell = false;
    uint32_t oldest = 0;   // chunk that is not acknowledged
    uint32_t reading = 0;  // the chunk being read
    uint32_t newest = 0;   // may still grow
    uint32_t offset = 0;   // bytes of the one being read that are sent
    uint64_t sent = 0;     // position of the next event to send
    uint64_t acknowledged = 0;
  };
  // The end of a batch that was sent before.
  struct Bound {
    uint32_t writer;
    uint64_t next_event;
    auto operator<=>(const Bound&) const = default;
  };
  struct Free {
    void operator()(void* memory) const;
  };

  bool Hold(Cursor& cursor, uint32_t index, uint64_t first_event);
  bool AdvanceChunk(Cursor& cursor);
  std::optional<Batch> TakeFrom(uint32_t slot, size_t min_bytes, proto::EventEncoder& encoder);
  void ReturnFinishedChunks(Cursor& cursor);
  void SkipTo(Cursor& cursor, uint64_t next_event);
  uint64_t BoundAfter(const Cursor& cursor, uint64_t last) const;
  void ForgetBounds();
  proto::Chunk& ChunkOf(uint32_t held) const { return segment_.chunk(held - 1); }
  uint64_t EndOf(uint32_t held) const;

  Segment& segment_;
  // Zeroed pages, of which only what is used is ever touched.
  std::unique_ptr<Cursor[], Free> cursors_;  // by slot
  std::unique_ptr<Held[], Free> held_;       // by index
  std::vector<Bound> bounds_;                // in order
  std::vector<uint32_t> finished_;
  uint32_t next_slot_ = 1;
  bool keeps_chunks_ = false;
};

}  // namespace ranktap::agent
