// The layout of the sealed memfd that an agent shares with its collector.
//
//   SegmentHeader | WriterSlot[writer_slots] | group of blocks[chunk_groups] | arena
//
// A *writer* is one thread's ring: a chain of chunks, each filled front to back and handed back
// when everything in it is acknowledged. Its events are numbered from 0; a chunk knows the number
// of its first. Writer 7, which has made 1,250 events, two of which found no chunk:
//
//    chunk at block 3       chunk at block 64               chunk at block 8
//   | first_event 0    |   | first_event 400          |    | first_event 1,100    |
//   | 0 ......... 399  |   | 400 ..... 900 .... 1,099 |    | 1,100 .. 1,247 | free|
//     handed back            ^acked    ^sent                        committed^
//
//   WriterSlot: produced 1,250, lost[ring full] 2. Only the agent's sender knows what a collector
//   has acknowledged (here 400) and what has been sent (here 900); neither is in the segment.
//
// A chunk is 1, 4, 16 or 64 blocks of one group, and begins at a multiple of its size: a thread's
// first is small, and who fills them faster than they are acknowledged gets larger ones. Memory
// that nobody has used yet is a hole, and reads as zeros. The agent writes, the collector reads
// only after the process has died, and then trusts nothing: it copies a chunk, checks every size in
// the copy, and starts at the position it has stored (collector/ingest/recovery). All counters are
// written by their own thread with plain stores (relaxed), except the two that publish:
// `Chunk::committed` and `WriterSlot::id` (release).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proto/events.h"
#include "proto/loss.h"

namespace ranktap::proto {

inline constexpr uint64_t kSegmentMagic = 0x31474553'50544b52;  // "RKTPSEG1"
// Changes with the layout here and with any struct in events.h. A collector of another version can
// still take frames from the socket; it cannot drain the rings of a dead process, and says so.
// Fields appended to LastWords do not change it: they are 0 where an older agent wrote nothing.
inline constexpr uint32_t kSegmentVersion = 2;

inline constexpr uint32_t kBlockBytes = 4096;
inline constexpr uint32_t kGroupBlocks = 64;
inline constexpr uint32_t kChunkBytes = kBlockBytes * kGroupBlocks;  // of the largest
// A segment may have fewer: one for each 4 KiB of it.
inline constexpr uint32_t kMaxWriterSlots = 8192;
inline constexpr uint32_t kChunkMagic = 0x4b4e4843;  // "CHNK"
inline constexpr uint32_t kArenaAlign = 16;
inline constexpr uint16_t kArenaMagic = 0xa7e4;

// Kinds of arena entries. The ids of each kind count up from 1 and are what goes on the wire.
enum class EntryKind : uint16_t {
  kString = 1,       // bytes, not necessarily UTF-8
  kLaunchShape = 2,  // struct LaunchShape
  kApiFunction = 3,  // struct ApiFunctionEntry, then the name
  kNvtxDomain = 4,   // the name
  kNvtxSchema = 5,   // a serialised v1.PayloadSchema
  kNvtxEnum = 6,     // a serialised v1.PayloadEnum
  kStack = 7,        // 32-bit words: flags (kStack...), then the frames (AppendStackFrame)
  kModule = 8,       // struct ModuleEntry, then the build id, then the path
};
inline constexpr uint32_t kEntryKinds = 16;  // room in SegmentHeader::next_id

struct ArenaEntry {
  uint16_t magic;
  uint16_t kind;   // EntryKind
  uint32_t id;     // unique among entries of its kind, from 1
  uint32_t bytes;  // of the content that follows
  uint32_t hash;   // of the content: the low half of XXH3_64bits
};
static_assert(sizeof(ArenaEntry) == kArenaAlign);

enum class ApiDomain : uint32_t { kRuntime = 1, kDriver = 2 };

struct ApiFunctionEntry {
  ApiDomain domain;
  uint32_t cbid;  // CUPTI callback id within the domain
};

inline constexpr uint32_t kStackTruncated = 1;  // its outermost frames are missing
inline constexpr size_t kMostWordsAFrame = 3;

// A frame is its distance from the one before, or, where that needs more than 32 bits, a mark and
// both halves of the address. (Varints take 100 ns a stack more, on the program's thread.)
inline constexpr int32_t kFarFrame = INT32_MIN;
inline uint32_t* AppendStackFrame(uint32_t* end, uint64_t previous, uint64_t address) {
  const auto distance = static_cast<int64_t>(address - previous);
  if (distance == static_cast<int32_t>(distance) && distance != kFarFrame) {
    *end++ = static_cast<uint32_t>(distance);
    return end;
  }
  *end++ = static_cast<uint32_t>(kFarFrame);
  *end++ = static_cast<uint32_t>(address);
  *end++ = static_cast<uint32_t>(address >> 32);
  return end;
}

struct ModuleEntry {
  uint64_t start, bytes;  // in memory
  uint64_t bias;          // address in memory - address in the file
  uint32_t build_id_bytes;
  uint32_t order;  // of loading: where two overlap, the later one took the earlier one's place
};

// The agent's last knowledge: read by a drain after death, when no frame can tell it any more.
struct LastWords {
  // Odd while the clock reading is being written.
  std::atomic<uint32_t> clock_sequence;
  std::atomic<uint32_t> ended;  // v1.Goodbye.Reason; 0: the process did not get to say
  std::atomic<uint64_t> tsc, monotonic_raw_ns, realtime_ns, spread_ns;
  // v1.Hello with nothing but the rank, where the process learnt it after its Hello. 0 bytes: it
  // did not, or they are being written.
  std::atomic<uint32_t> rank_bytes;
  char rank[508];
  // Not 0: a spool has events that the rings have no more and no collector has acknowledged.
  std::atomic<uint32_t> spooled;
};

struct SegmentHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t segment_bytes;
  uint32_t writer_slots, chunk_groups, block_bytes, pid;
  uint64_t slots_offset, chunks_offset, arena_offset, arena_bytes;
  uint8_t session[16];
  std::atomic<uint64_t> arena_used;
  std::atomic<uint32_t> next_id[kEntryKinds];
  std::atomic<uint32_t> next_writer;
  LastWords last_words;
};

enum class WriterKind : uint32_t { kThread = 1, kDrain = 2, kShared = 3 };
enum class WriterState : uint32_t { kFree = 0, kLive = 1, kEnded = 2 };

// `produced` counts every attempt to emit, before anything else is done about it; the events in the
// chunks and `lost` account for all of them but the one that death may interrupt:
//   produced - (events committed + sum of lost) is 0, or 1 after a kill.
struct alignas(64) WriterSlot {
  std::atomic<uint32_t> id;     // 0: the slot is free
  std::atomic<uint32_t> state;  // WriterState
  uint32_t kind;                // WriterKind
  int32_t thread;               // gettid() in the process's own pid namespace
  std::atomic<uint64_t> produced;
  std::atomic<uint64_t> lost[kLossCount];
  // The outermost CUDA call this thread is inside of; open_api 0: none.
  std::atomic<uint64_t> open_since_ticks;
  std::atomic<uint32_t> open_api;  // ArenaRef
  std::atomic<uint32_t> open_correlation;
  std::atomic<uint32_t> first_chunk;  // as Chunk::next
  char name[16];                      // of the thread at its first event, NUL-terminated
  // Kernels, copies and the like that have ended on a device: of the thread that takes CUPTI's
  // records.
  std::atomic<uint64_t> work_ended;
  uint8_t pad[256 - 200];
};
static_assert(sizeof(WriterSlot) == 256);

struct alignas(64) Chunk {
  uint32_t magic;
  std::atomic<uint32_t> writer;  // id; 0: free
  uint64_t first_event;
  uint32_t ordinal;  // 0 for a writer's first chunk
  // Index + 1 of the first block of the chunk that continues this one; 0: none yet.
  std::atomic<uint32_t> next;
  // events << 32 | bytes after the header. One word, so that a reader never sees one without the
  // other.
  std::atomic<uint64_t> committed;
  uint32_t blocks;  // how many it has
  uint8_t pad[28];

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(this + 1); }
};
static_assert(sizeof(Chunk) == 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

inline constexpr uint32_t kChunkCapacity = kChunkBytes - sizeof(Chunk);  // of the largest

constexpr uint64_t PackCommitted(uint32_t events, uint32_t bytes) {
  return uint64_t{events} << 32 | bytes;
}
constexpr uint32_t CommittedEvents(uint64_t committed) {
  return static_cast<uint32_t>(committed >> 32);
}
constexpr uint32_t CommittedBytes(uint64_t committed) { return static_cast<uint32_t>(committed); }

// The places of things in a segment of `segment_bytes`; the arena gets what is left. `arena_bytes`
// 0: too small.
struct SegmentLayout {
  uint64_t slots_offset, chunks_offset, arena_offset, arena_bytes;
};

constexpr SegmentLayout LayOutSegment(uint64_t segment_bytes, uint32_t writer_slots,
                                      uint32_t chunk_groups) {
  constexpr uint64_t kPage = 4096;
  SegmentLayout layout{};
  layout.slots_offset = kPage;
  layout.chunks_offset = layout.slots_offset + uint64_t{writer_slots} * sizeof(WriterSlot);
  layout.arena_offset = layout.chunks_offset + uint64_t{chunk_groups} * kChunkBytes;
  layout.arena_bytes =
      segment_bytes > layout.arena_offset ? segment_bytes - layout.arena_offset : 0;
  return layout;
}
static_assert(sizeof(SegmentHeader) <= 4096);

}  // namespace ranktap::proto
