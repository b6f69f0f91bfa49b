// Reads a trace file block by block, and goes on behind damage. Total over any file: what cannot be
// read is reported with its offset, never trusted. The only reader there is: `report`, `verify`,
// `export` and the summary of `run` all stand on it. One reader per thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collector/file/block_codec.h"
#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"
#include "collector/file/trace_format.h"

namespace ranktap::collector {

// Bytes of a file that could not be read.
struct Damage {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string what;
};

struct Block {
  uint64_t offset = 0;  // of its header in the file
  BlockHeader header{};
  std::span<const std::byte> raw{};  // decompressed; valid until the next call
  uint64_t end() const { return offset + sizeof(BlockHeader) + header.stored_bytes; }
};

class TraceReader {
 public:
  // Fails when the file cannot be opened or is not a trace that this build can read. A damaged file
  // header is damage, not failure, as long as blocks follow it.
  static Result<TraceReader> Open(const std::string& path);
  // The same of an open file; `path` is for messages.
  static Result<TraceReader> Open(FileDescriptor file, const std::string& path);

  // The header of the block at `offset`, whose bytes are neither read nor checked: `raw` is empty.
  // False where there is none, or it is damaged or cut off.
  bool HeaderAt(uint64_t offset, Block* block);
  // All of them from the start to the first that is not there.
  std::vector<Block> ListBlocks();
  // Next() goes on with the block at `offset`, whose number is `sequence`.
  void Seek(uint64_t offset, uint64_t sequence) {
    offset_ = offset;
    next_sequence_ = sequence;
    skipped_ = false;
  }
  // The next block whose checksums agree. False at the end.
  bool Next(Block* block);
  // The same, but false at the first damage: nothing is searched for, which takes minutes in a file
  // of a terabyte of nothing.
  bool NextWhole(Block* block);

  // The begin of the block that Next() tries.
  uint64_t offset() const { return offset_; }
  const std::string& path() const { return path_; }
  const FileHeader& header() const { return header_; }
  uint64_t file_bytes() const { return file_bytes_; }
  // The file ends with a trailer: its writer closed it. Known from the start.
  bool closed() const { return closed_; }
  // Complete after Next has returned false. A torn tail, as a killed writer leaves it, is the last
  // entry of a file that is not closed.
  const std::vector<Damage>& damage() const { return damage_; }

 private:
  TraceReader() = default;
  [[nodiscard]] bool ReadAt(uint64_t offset, std::span<std::byte> into);
  void ReadTrailer();
  [[nodiscard]] bool ReadFileHeader();
  // Whether a file too short for a header may be a trace that was cut off (or is empty).
  [[nodiscard]] bool StartsLikeATrace();
  // Why the block at `offset` cannot be used; empty when `block` is filled.
  std::string TryBlock(uint64_t offset, Block* block);
  // The first offset at or after `from` where a block header with a good checksum lies, else the
  // end of the blocks.
  uint64_t FindBlock(uint64_t from);
  uint64_t DataFrom(uint64_t at) const;

  std::string path_;
  FileDescriptor file_;
  FileHeader header_{};
  uint64_t file_bytes_ = 0;
  uint64_t blocks_end_ = 0;  // before the trailer
  uint64_t offset_ = 0;
  uint64_t next_sequence_ = 0;
  bool skipped_ = false;  // damage right before offset_
  bool closed_ = false;
  std::vector<Damage> damage_;
  std::unique_ptr<BlockDecompressor> decompressor_;
  std::vector<std::byte> stored_, raw_;
};

}  // namespace ranktap::collector
