// The process's half of the shared memory in proto/ring.h: creates it, lends chunks to writers and
// takes them back.
// Runs on: LendChunk and AcquireSlot on user threads, the rest on the starting thread and the
// sender.  May not: on user threads allocate, lock, log or make a system call.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/core/host_clock.h"
#include "agent/core/own_descriptor.h"
#include "proto/ring.h"

namespace ranktap::agent {

class Segment {
 public:
  // Creates and maps the memfd, sealed against resizing, not inherited by fork children. All of its
  // memory is allocated (7 ms for 32 MiB): touching a hole that cannot be filled is SIGBUS in the
  // job, and a program that starts 64 threads at once needs 64 chunks at once. False: errno says
  // why.
  [[nodiscard]] bool Create(uint64_t bytes, const uint8_t session[16]);

  // Brings the pages of up to `chunks` more chunks into the page table, so that the program's
  // threads do not fault (17 ns an event). False when all are. Sender only.
  bool Prefault(uint32_t chunks);

  bool ready() const { return header_ != nullptr; }
  // The memfd, or -1 when the program has closed it (and may have the number itself by now).
  int fd() const;
  uint64_t bytes() const { return bytes_; }
  proto::SegmentHeader& header() { return *header_; }
  proto::WriterSlot& slot(uint32_t index) { return slots_[index]; }
  proto::Chunk& chunk(uint32_t index) {
    return *reinterpret_cast<proto::Chunk*>(chunks_ + uint64_t{index} * proto::kChunkBytes);
  }
  uint32_t chunk_count() const { return header_->chunk_count; }
  uint32_t IndexOf(const proto::Chunk& chunk) const {
    return static_cast<uint32_t>((reinterpret_cast<const std::byte*>(&chunk) - chunks_) /
                                 proto::kChunkBytes);
  }
  std::byte* arena() { return arena_; }
  uint64_t arena_bytes() const { return header_->arena_bytes; }

  // A free chunk made ready for `writer`, or nullptr. Lock-free. `pending` gets it as soon as it is
  // not free any more: a thread that is cut off here still knows what to give back.
  proto::Chunk* LendChunk(uint32_t writer, uint64_t first_event, uint32_t ordinal,
                          proto::Chunk*& pending);
  // Everything in the chunk is acknowledged.
  void ReturnChunk(proto::Chunk& chunk);

  // How many chunks nobody has, at some moment of the call.
  uint32_t FreeChunks() const;

  // A free writer slot taken for a new writer, or nullptr. Lock-free.
  proto::WriterSlot* AcquireSlot(proto::WriterKind kind, int32_t thread, const char name[16]);
  // After the writer's end, with all its chunks returned.
  void ReleaseSlot(proto::WriterSlot& slot);

  // Where losses go that have no writer.
  proto::WriterSlot& shared_slot() { return slots_[0]; }

  // The latest reading, for a drain after death. One thread at a time.
  void WriteClock(const ClockReading& reading);

  // In a fork child: keeps the addresses valid, with private memory behind them, for a hook that
  // the fork interrupted.
  void ReplaceInForkChild();

 private:
  static constexpr uint32_t kMaxChunks = 1024;

  OwnDescriptor fd_;
  uint64_t bytes_ = 0;
  proto::SegmentHeader* header_ = nullptr;
  proto::WriterSlot* slots_ = nullptr;
  std::byte* chunks_ = nullptr;
  std::byte* arena_ = nullptr;
  uint32_t prefaulted_chunks_ = 0;
  std::atomic<uint32_t> slot_hint_{1};
  std::atomic<uint64_t> free_chunks_[kMaxChunks / 64]{};  // a set bit is a free chunk
};

}  // namespace ranktap::agent
