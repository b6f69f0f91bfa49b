// Writes one trace file: header, blocks, and in between their indexes. Not thread-safe; lives on
// the writer thread. Knows bytes and checksums, not what the frames say (trace_state.h does).
//
// A write that fails leaves the file as it was before it: what was written of the block is cut off
// again, so that nothing is ever appended behind a torn block. If even that fails the writer is
// broken and refuses everything.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "collector/file/block_codec.h"
#include "collector/file/block_index.h"
#include "collector/file/file_descriptor.h"
#include "collector/file/trace_format.h"

namespace ranktap::collector {

// The facts about its frames in a block's header.
struct FramesSummary {
  uint32_t frames = 0;
  uint64_t events = 0;
  uint64_t first_received_ns = 0;
  uint64_t last_received_ns = 0;
};

class TraceWriter {
 public:
  // `file` is empty and open for writing; `compressor` outlives the writer.
  TraceWriter(FileDescriptor file, BlockCompressor& compressor);

  // Goes on in a file that ends with a good block at `offset`. The next block has this `sequence`;
  // `index` lists the blocks since the file's last index.
  TraceWriter(FileDescriptor file, BlockCompressor& compressor, uint64_t offset, uint64_t sequence,
              BlockIndex index);

  // The first thing to call in an empty file. `session` and `collector` are 16 bytes each.
  [[nodiscard]] bool WriteHeader(std::span<const uint8_t> session,
                                 std::span<const uint8_t> collector, uint64_t created_realtime_ns);
  // `frames`: whole frames, at most kMaxFramesBytes.
  [[nodiscard]] bool WriteFrames(std::span<const std::byte> frames, const FramesSummary& summary);
  // A block of another file as it is stored there; it gets the next number.
  [[nodiscard]] bool CopyBlock(BlockHeader header, std::span<const std::byte> stored);
  // `checkpoint`: a serialised v1.Checkpoint.
  [[nodiscard]] bool WriteCheckpoint(std::string_view checkpoint);
  // From now on a block is written only where this many bytes are left behind it, besides those of
  // the index; otherwise it fails with ENOSPC. So a full file system still takes the file's end. 0:
  // no longer. It keeps no room where plenty is free or the file system cannot set room aside.
  void KeepRoom(uint64_t bytes) { room_ = bytes; }
  // The last index and the trailer; the last thing to call. Gives back what room is left.
  [[nodiscard]] bool Finish();

  uint64_t file_bytes() const { return offset_; }
  // Raw bytes of frames since the last checkpoint.
  uint64_t bytes_since_checkpoint() const { return since_checkpoint_; }
  // The memory that it holds: the index that is not written yet.
  uint64_t MemoryBytes() const { return index_.MemoryBytes(); }
  bool broken() const { return broken_; }
  // errno of the last failure.
  int error() const { return error_; }

 private:
  // And the index that may be due after it.
  [[nodiscard]] bool WriteBlock(BlockType type, std::span<const std::byte> raw,
                                const FramesSummary& summary);
  [[nodiscard]] bool WriteIndex();
  // `header` becomes the block's.
  [[nodiscard]] bool AppendBlock(BlockType type, std::span<const std::byte> raw,
                                 const FramesSummary& summary, BlockHeader* header);
  [[nodiscard]] bool HasRoom(uint64_t block_bytes);
  // Sets aside the file's bytes up to `end`. False only where that much is not left.
  [[nodiscard]] bool SetAside(uint64_t end);
  [[nodiscard]] bool Append(std::span<const std::byte> head, std::span<const std::byte> body);

  FileDescriptor file_;
  BlockCompressor* compressor_;
  uint64_t offset_ = 0;
  uint64_t sequence_ = 0;
  uint64_t since_checkpoint_ = 0;
  uint64_t room_ = 0;
  uint64_t set_aside_ = 0;  // up to this offset the file system has taken room for the file
  BlockIndex index_;        // of the blocks since the last one
  int error_ = 0;
  bool broken_ = false;
};

}  // namespace ranktap::collector
