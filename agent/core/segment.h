// The process's half of the shared memory in proto/ring.h: creates it, lends chunks to writers and
// takes them back. With two groups of 64 blocks, after a thread has asked for chunks of 1, 4 and 16
// blocks and another one for 1:
//
//   group 0  block 0   1   2   3   4..7     8..15   16..31    32..63
//            A's 1     B   -   -   A's 4    free    A's 16    free
//   group 1  not allocated yet: Grow makes it ready when too little is free
//
// Runs on: LendChunk, AcquireSlot and GrowArena on user threads, the rest on the starting thread
// and the sender.  May not: on user threads allocate, lock, log or make a system call; but for more
// of the segment where none is free, each part of it once, and yields while another brings it.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/core/host_clock.h"
#include "agent/core/own_descriptor.h"
#include "proto/loss.h"
#include "proto/ring.h"

namespace ranktap::agent {

class Segment {
 public:
  // Creates and maps the memfd, sealed against resizing. Its memory is allocated before anybody is
  // given a part of it (touching a hole that cannot be filled is SIGBUS in the job): some 0.7 MiB
  // here, the rest as it is wanted, by Grow. False: errno says why.
  [[nodiscard]] bool Create(uint64_t bytes, const uint8_t session[16]);

  // Allocates more where little is free, and brings it into the page table, so that the program's
  // threads do not fault (17 ns an event). Sender only. False: there is enough for now, or the
  // system gives no more, which is asked again by the next call.
  bool Grow();
  // The same for the arena alone, on any thread. False: it has all that it may have, or the system
  // gives no more.
  bool GrowArena();

  bool ready() const { return header_ != nullptr; }
  // The memfd, or -1 when the program has closed it (and may have the number itself by now).
  int fd() const;
  uint64_t bytes() const { return bytes_; }
  proto::SegmentHeader& header() { return *header_; }
  proto::WriterSlot& slot(uint32_t index) { return slots_[index]; }
  // Slots from here on have never been used.
  uint32_t slots_used() const { return slots_used_.load(std::memory_order_acquire); }
  std::byte* arena() { return arena_; }
  // Allocated so far. Not read from the shared memory, which the program may write over.
  uint64_t arena_bytes() const { return arena_ready_.load(std::memory_order_acquire); }

  // Chunks go by the index of their first block.
  proto::Chunk& chunk(uint32_t block) {
    return *reinterpret_cast<proto::Chunk*>(chunks_ + uint64_t{block} * proto::kBlockBytes);
  }
  uint32_t IndexOf(const proto::Chunk& chunk) const {
    return static_cast<uint32_t>((reinterpret_cast<const std::byte*>(&chunk) - chunks_) /
                                 proto::kBlockBytes);
  }
  // How many blocks the chunk has that begins at this one; 0: there begins none that is lent.
  uint32_t BlocksOf(uint32_t block) const {
    return block < AllBlocks() ? sizes_[block].load(std::memory_order_acquire) : 0;
  }
  // The bytes that follow a lent chunk's header.
  uint32_t CapacityOf(const proto::Chunk& chunk) const {
    const uint32_t blocks = BlocksOf(IndexOf(chunk));
    return blocks == 0 ? 0 : blocks * proto::kBlockBytes - uint32_t{sizeof(proto::Chunk)};
  }

  struct Wanted {
    uint32_t writer = 0;
    uint64_t first_event = 0;
    uint32_t ordinal = 0;
    // It may get fewer: there are no more, or that is more than a thread's share.
    uint32_t blocks = 1;
    uint32_t least_bytes = 0;  // of one event
  };
  // A free chunk made ready, or nullptr. Lock-free. `pending` gets it as soon as it is not free any
  // more: a thread that is cut off here still knows what to give back.
  proto::Chunk* LendChunk(const Wanted& wanted, proto::Chunk*& pending);
  // Everything in the chunk is acknowledged.
  void ReturnChunk(proto::Chunk& chunk);
  // The chunk is not written to any more: it has a next one, or its writer has ended.
  void CloseChunk(const proto::Chunk& chunk);
  // Why there is none just now.
  proto::Loss WhyNoChunk() const;

  // Blocks that are lent and those that could be, at some moment of the call.
  uint32_t FreeBlocks() const;
  uint32_t LentBlocks() const {
    return groups_ready_.load(std::memory_order_acquire) * proto::kGroupBlocks - FreeBlocks();
  }
  uint32_t AllBlocks() const { return groups_ * proto::kGroupBlocks; }

  // A free writer slot taken for a new writer, or nullptr. Lock-free.
  proto::WriterSlot* AcquireSlot(proto::WriterKind kind, int32_t thread, const char name[16]);
  // After the writer's end, with all its chunks returned.
  void ReleaseSlot(proto::WriterSlot& slot);

  // Losses without a writer are counted here.
  proto::WriterSlot& shared_slot() { return slots_[0]; }

  // The latest reading, for a drain after death. One thread at a time.
  void WriteClock(const ClockReading& reading);
  // A drain after death would find less than there is: a spool has the rest.
  void WriteSpooled(bool spooled) { header_->last_words.spooled.store(spooled ? 1 : 0); }

  // In a fork child: keeps the addresses valid, with private memory behind them, for a hook that
  // the fork interrupted.
  void ReplaceInForkChild();

 private:
  static constexpr uint32_t kMaxGroups = 1024;

  void WriteHeader(const proto::SegmentLayout& layout, const uint8_t session[16]);
  bool Allocate(const void* start, uint64_t bytes);
  bool GrowGroups(uint32_t groups);
  bool GrowOnUserThread();
  bool GrowSlots();
  uint32_t TakeSlot();
  int32_t TakeRun(uint32_t blocks);

  OwnDescriptor fd_;
  uint64_t bytes_ = 0;
  proto::SegmentHeader* header_ = nullptr;
  proto::WriterSlot* slots_ = nullptr;
  std::byte* chunks_ = nullptr;
  std::byte* arena_ = nullptr;
  bool populates_ = false;  // the kernel knows MADV_POPULATE_WRITE
  uint32_t groups_ = 0, slot_count_ = 0;
  uint64_t arena_size_ = 0;
  uint32_t spare_groups_ = 2;  // the sender's: how many are to be free at each look
  std::atomic<uint32_t> groups_ready_{0}, slots_ready_{0}, slots_used_{1};
  std::atomic<uint64_t> arena_ready_{0};
  std::atomic<uint32_t> live_writers_{0}, open_blocks_{0};
  std::atomic<uint64_t> free_blocks_[kMaxGroups]{};  // by group; set: free, there or not
  std::atomic<uint8_t>* sizes_ = nullptr;            // by block
  std::atomic<uint64_t> free_slots_[proto::kMaxWriterSlots / 64]{};
};

}  // namespace ranktap::agent
