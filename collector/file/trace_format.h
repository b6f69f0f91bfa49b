// A trace file, byte by byte (docs/trace-format.md):
//
//   FileHeader | block* | FileTrailer        (the trailer only when the file was closed)
//   block = BlockHeader | stored bytes
//
// Integers are little-endian, structs are stored as they lie in memory. A file is only ever
// appended to; a block is complete when both its checksums agree.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "proto/frame.h"

namespace ranktap::collector {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t kTraceMagic = 0x31454341'52544b52;    // "RKTRACE1"
inline constexpr uint64_t kTrailerMagic = 0x31444e45'52544b52;  // "RKTREND1"
inline constexpr uint32_t kBlockMagic = 0x4b425452;             // "RTBK"
inline constexpr uint32_t kTraceVersion = 1;

// A block of frames closes when it is this long or this old.
inline constexpr uint32_t kBlockBytes = 1u << 20;
inline constexpr uint64_t kBlockAgeNs = 200'000'000;
// Unless it is shorter than this, of a rank with little to say: then it stays open for this many
// ages. Its events are still in the rings, of which they take some 300 KiB at most.
inline constexpr uint32_t kSmallBlockBytes = 32u << 10;
inline constexpr int kSmallBlockAges = 5;
// The frame that fills a block may be as long as a frame can be.
inline constexpr uint32_t kMaxFramesBytes =
    kBlockBytes + proto::kMaxPayloadBytes + sizeof(proto::FrameHeader);
// A checkpoint holds a whole dictionary, which the collector's limits keep below this.
inline constexpr uint32_t kMaxCheckpointBytes = 64u << 20;
// Raw bytes of frames between two checkpoints: what a reader can lose the names of.
inline constexpr uint64_t kCheckpointEveryBytes = 16u << 20;
// An index follows after so many blocks. All of a file's entries, held until its end, made a
// collector deaf after 170 rank-hours of one user.
inline constexpr uint64_t kBlocksOfAnIndex = 1024;

struct FileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint8_t session[16];    // v1.Hello.session
  uint8_t collector[16];  // which collector process wrote the file
  uint64_t created_realtime_ns;
  uint32_t required_features;  // bits a reader must know; none yet
  uint32_t header_crc;         // of the bytes before it
};
static_assert(sizeof(FileHeader) == 64);

enum class BlockType : uint16_t {
  kFrames = 1,      // frames of proto/frame.h, one after the other
  kCheckpoint = 2,  // v1.Checkpoint
  kIndex = 3,       // v1.Index: of the blocks since the index before
};

enum class Codec : uint16_t { kNone = 0, kZstd = 1 };

struct BlockHeader {
  uint32_t magic;
  BlockType type;
  Codec codec;
  uint32_t stored_bytes;
  uint32_t raw_bytes;
  uint64_t sequence;  // 0, 1, 2, ... in a file
  uint64_t events;    // of all frames in the block
  uint32_t frames;
  uint32_t flags;  // none yet
  // When the collector received the first and the last frame, on its CLOCK_MONOTONIC_RAW. Events
  // are older than their frame by at most the sender's period, GPU records by one flush more.
  uint64_t first_received_ns;
  uint64_t last_received_ns;
  uint32_t stored_crc;
  uint32_t header_crc;  // of the bytes before it
};
static_assert(sizeof(BlockHeader) == 64);
static_assert(offsetof(BlockHeader, header_crc) == 60);

struct FileTrailer {
  uint64_t magic;
  uint64_t index_offset;  // of the index block's header
  uint64_t file_bytes;    // trailer included
  uint32_t reserved;
  uint32_t crc;
};
static_assert(sizeof(FileTrailer) == 32);

constexpr uint32_t MaxRawBytes(BlockType type) {
  return type == BlockType::kFrames ? kMaxFramesBytes : kMaxCheckpointBytes;
}

}  // namespace ranktap::collector
