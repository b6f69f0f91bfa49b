// The shared memory segment.
// Runs on: see segment.h.  May not: trust what lies in the shared memory; the program can write it.
#include "agent/core/segment.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace ranktap::agent {

using proto::kGroupBlocks;
using proto::WriterSlot;
using proto::WriterState;

namespace {

// Whoever grows the segment. A thread that died while it did costs the next one as many yields.
constinit std::atomic<bool> g_growing{false};
constexpr int kTurnTries = 1000;

// One thread grows at a time where many find nothing at once: a herd would allocate the same in
// turn. Who waited gets true, and looks again.
template <typename Growth>
bool GrowInTurn(Growth grow) {
  const int error = errno;
  bool is_mine = !g_growing.exchange(true, std::memory_order_acquire);
  for (int tries = 0; !is_mine && g_growing.load(std::memory_order_acquire); ++tries) {
    is_mine = tries == kTurnTries;  // whose turn it was is gone
    sched_yield();
  }
  bool grew = true;
  if (is_mine) {
    grew = grow();
    g_growing.store(false, std::memory_order_release);
  }
  errno = error;
  return grew;
}

// Groups that we allocate at the start, and ahead of use from then on: most programs need no more,
// and each page costs the start of every one of them. A program that uses it up between two looks
// of the sender allocates for itself, and has twice as much ahead from then on: up to 50 ms of 160
// MB/s.
constexpr uint32_t kFirstGroups = 2;
constexpr uint32_t kMostSpareGroups = 32;
constexpr uint64_t kSpareArena = 128 << 10;
constexpr uint32_t kSpareSlots = 256;

// The bits from which a run of `blocks` free ones begins, aligned to its size.
uint64_t RunsIn(uint64_t free, uint32_t blocks) {
  for (uint32_t step = 1; step < blocks; step *= 2) free &= free >> step;
  switch (blocks) {
    case 4:
      return free & 0x1111111111111111;
    case 16:
      return free & 0x0001000100010001;
    case 64:
      return free & 1;
    default:
      return free;
  }
}

constexpr uint64_t MaskOf(uint32_t blocks) {
  return blocks == 64 ? ~uint64_t{0} : (uint64_t{1} << blocks) - 1;
}

}  // namespace

bool Segment::Create(uint64_t bytes, const uint8_t session[16]) {
  // A quarter for names, the rest for slots and rings.
  const uint32_t slots = static_cast<uint32_t>(
      std::clamp<uint64_t>(bytes / 4096, 64, proto::kMaxWriterSlots) / 64 * 64);
  const uint64_t rings = bytes / 4 * 3 - std::min(bytes / 4 * 3, 4096 + slots * sizeof(WriterSlot));
  groups_ = static_cast<uint32_t>(std::min<uint64_t>(rings / proto::kChunkBytes, kMaxGroups));
  slot_count_ = slots;
  const proto::SegmentLayout layout = proto::LayOutSegment(bytes, slots, groups_);
  if (groups_ == 0 || layout.arena_bytes == 0) {
    errno = EINVAL;
    return false;
  }
  const int fd = memfd_create("ranktap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return false;
  // Inherited by fork children: a hook that a signal handler forked in goes on in the child, and
  // where atfork handlers do not run (_Fork, the system call) it would touch a hole.
  void* base = MAP_FAILED;
  void* sizes = mmap(nullptr, AllBlocks(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (sizes != MAP_FAILED && ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (base == MAP_FAILED) {
    const int error = errno;
    close(fd);
    errno = error;
    return false;
  }
  fd_.Adopt(fd);
  bytes_ = bytes;
  auto* start = static_cast<std::byte*>(base);
  slots_ = reinterpret_cast<WriterSlot*>(start + layout.slots_offset);
  chunks_ = start + layout.chunks_offset;
  arena_ = start + layout.arena_offset;
  arena_size_ = layout.arena_bytes;
  sizes_ = static_cast<std::atomic<uint8_t>*>(sizes);
  header_ = reinterpret_cast<proto::SegmentHeader*>(start);
  populates_ = madvise(start, 4096, MADV_POPULATE_WRITE) == 0;
  std::fill_n(free_blocks_, groups_, ~uint64_t{0});
  std::fill_n(free_slots_, slot_count_ / 64, ~uint64_t{0});
  free_slots_[0] &= ~uint64_t{1};  // the shared one
  if (!Allocate(start, layout.slots_offset) || !GrowSlots() || !GrowGroups(kFirstGroups) ||
      !GrowArena()) {
    return false;
  }
  WriteHeader(layout, session);
  return true;
}

void Segment::WriteHeader(const proto::SegmentLayout& layout, const uint8_t session[16]) {
  header_ = new (header_) proto::SegmentHeader{};
  header_->version = proto::kSegmentVersion;
  header_->header_bytes = sizeof(proto::SegmentHeader);
  header_->segment_bytes = bytes_;
  header_->writer_slots = slot_count_;
  header_->chunk_groups = groups_;
  header_->block_bytes = proto::kBlockBytes;
  header_->pid = static_cast<uint32_t>(getpid());
  header_->slots_offset = layout.slots_offset;
  header_->chunks_offset = layout.chunks_offset;
  header_->arena_offset = layout.arena_offset;
  header_->arena_bytes = layout.arena_bytes;
  std::memcpy(header_->session, session, sizeof(header_->session));
  header_->arena_used = 2 * proto::kArenaAlign;  // no entry has ref 0 or 1
  header_->next_writer = 1;
  slots_[0].kind = static_cast<uint32_t>(proto::WriterKind::kShared);
  slots_[0].state = static_cast<uint32_t>(WriterState::kLive);
  slots_[0].id = header_->next_writer.fetch_add(1);
  header_->magic = proto::kSegmentMagic;
}

int Segment::fd() const { return fd_.get(); }

bool Segment::Allocate(const void* start, uint64_t bytes) {
  constexpr uint64_t kPage = 4096;
  const auto* base = reinterpret_cast<const std::byte*>(header_);
  const uint64_t from = static_cast<uint64_t>(static_cast<const std::byte*>(start) - base);
  const uint64_t first = from / kPage * kPage;
  const uint64_t end = std::min((from + bytes + kPage - 1) / kPage * kPage, bytes_);
  // Allocates or fails, where a store would raise SIGBUS; needs no descriptor, which the program
  // may have closed, and no system call that a sandbox does not know (docs/in-process-rules.md).
  if (madvise(const_cast<std::byte*>(base) + first, end - first, MADV_POPULATE_WRITE) == 0) {
    return true;
  }
  // Kernels before 5.14 do not know it. (posix_fallocate would write zeros byte by byte.)
  const int fd = fd_.get();
  return !populates_ && fd >= 0 &&
         fallocate(fd, 0, static_cast<off_t>(first), static_cast<off_t>(end - first)) == 0;
}

// Allocates first and says so afterwards, which two threads may do beside each other: memory that
// is there already stays as it is. (Claimed first, the last of it was neither free nor to be had
// while its thread did not come to run: 126 of 40,000 events were lost on a busy machine.)
bool Segment::GrowGroups(uint32_t groups) {
  uint32_t ready = groups_ready_.load(std::memory_order_relaxed);
  const uint32_t more = std::min(groups, groups_ - ready);
  if (more == 0 || !Allocate(&chunk(ready * kGroupBlocks), uint64_t{more} * proto::kChunkBytes)) {
    return false;
  }
  groups_ready_.compare_exchange_strong(ready, ready + more, std::memory_order_release);
  return true;
}

bool Segment::GrowArena() {
  uint64_t ready = arena_ready_.load(std::memory_order_relaxed);
  const uint64_t end = std::min(ready + kSpareArena, arena_size_);
  if (end == ready || !Allocate(arena_ + ready, end - ready)) return false;
  while (ready < end &&
         !arena_ready_.compare_exchange_weak(ready, end, std::memory_order_release)) {
  }
  return true;
}

bool Segment::GrowSlots() {
  uint32_t ready = slots_ready_.load(std::memory_order_relaxed);
  const uint32_t more = std::min(kSpareSlots, slot_count_ - ready);
  if (more == 0 || !Allocate(&slots_[ready], uint64_t{more} * sizeof(WriterSlot))) return false;
  slots_ready_.compare_exchange_strong(ready, ready + more, std::memory_order_release);
  return true;
}

bool Segment::Grow() {
  bool grew = false;
  const uint32_t free = FreeBlocks();
  if (free < spare_groups_ * kGroupBlocks) {
    if (free < spare_groups_ * kGroupBlocks / 2) {
      spare_groups_ = std::min(2 * spare_groups_, kMostSpareGroups);
    }
    // One at a time: a thread that waits for its turn waits for one.
    for (uint32_t i = 0; i < spare_groups_ / 2; ++i) {
      grew |= GrowInTurn([this] { return GrowGroups(1); });
    }
  }
  const uint64_t used = header_->arena_used.load(std::memory_order_relaxed);
  if (used + kSpareArena / 2 > arena_bytes()) grew |= GrowArena();
  const uint32_t slots_ready = slots_ready_.load(std::memory_order_relaxed);
  if (live_writers_.load(std::memory_order_relaxed) > slots_ready / 2) {
    grew |= GrowInTurn([this] { return GrowSlots(); });
  }
  return grew;
}

// The sender did not come to run: this costs 30 us for 256 KiB, once for each.
bool Segment::GrowOnUserThread() {
  const bool is_whole = groups_ready_.load(std::memory_order_acquire) == groups_;
  return !is_whole && GrowInTurn([this] { return GrowGroups(1); });
}

// The first block of a run that is not free any more, or -1. Groups that are in use already come
// first: a whole one is kept for who wants it all.
int32_t Segment::TakeRun(uint32_t blocks) {
  const uint32_t groups = groups_ready_.load(std::memory_order_acquire);
  for (const bool untouched : {false, true}) {
    for (uint32_t group = 0; group < groups; ++group) {
      uint64_t free = free_blocks_[group].load(std::memory_order_relaxed);
      while (untouched == (free == ~uint64_t{0})) {
        const uint64_t runs = RunsIn(free, blocks);
        if (runs == 0) break;
        const int bit = std::countr_zero(runs);
        if (free_blocks_[group].compare_exchange_weak(free, free & ~(MaskOf(blocks) << bit),
                                                      std::memory_order_acquire)) {
          return static_cast<int32_t>(group * kGroupBlocks) + bit;
        }
      }
    }
  }
  return -1;
}

proto::Chunk* Segment::LendChunk(const Wanted& wanted, proto::Chunk*& pending) {
  // All that threads write to now is a quarter of the rings: the rest is for what waits.
  const uint32_t share = AllBlocks() / 4 / (live_writers_.load(std::memory_order_relaxed) + 1);
  uint32_t blocks = std::clamp(wanted.blocks, 1u, kGroupBlocks);
  while (blocks > 1 && blocks > share) blocks /= 4;
  uint32_t least = 1;
  while (least * proto::kBlockBytes - sizeof(proto::Chunk) < wanted.least_bytes) least *= 4;
  blocks = std::max(blocks, least);
  const uint32_t most = blocks;
  int32_t first = -1;
  bool grows = true;
  while ((first = TakeRun(blocks)) < 0) {
    if (blocks > least) {
      blocks /= 4;
    } else if (grows) {
      // If not, one more look: another thread may have grown it meanwhile.
      grows = GrowOnUserThread();
      blocks = grows ? most : least;
    } else {
      return nullptr;
    }
  }
  const auto block = static_cast<uint32_t>(first);
  proto::Chunk& taken = chunk(block);
  sizes_[block].store(static_cast<uint8_t>(blocks), std::memory_order_release);
  pending = &taken;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  open_blocks_.fetch_add(blocks, std::memory_order_relaxed);
  // A drain after death reads the writer's id last: it must not find the old events behind it.
  taken.committed.store(0, std::memory_order_relaxed);
  taken.magic = proto::kChunkMagic;
  taken.blocks = blocks;
  taken.first_event = wanted.first_event;
  taken.ordinal = wanted.ordinal;
  taken.next.store(0, std::memory_order_relaxed);
  taken.writer.store(wanted.writer, std::memory_order_release);
  return &taken;
}

void Segment::CloseChunk(const proto::Chunk& chunk) {
  open_blocks_.fetch_sub(BlocksOf(IndexOf(chunk)), std::memory_order_relaxed);
}

void Segment::ReturnChunk(proto::Chunk& returned) {
  const uint32_t index = IndexOf(returned);
  const uint32_t blocks = BlocksOf(index);
  if (blocks == 0) return;
  returned.writer.store(0, std::memory_order_relaxed);
  sizes_[index].store(0, std::memory_order_relaxed);
  free_blocks_[index / kGroupBlocks].fetch_or(MaskOf(blocks) << (index % kGroupBlocks),
                                              std::memory_order_release);
}

proto::Loss Segment::WhyNoChunk() const {
  const bool most_is_open = open_blocks_.load(std::memory_order_relaxed) > LentBlocks() / 2;
  return most_is_open ? proto::Loss::kRingShare : proto::Loss::kRingFull;
}

uint32_t Segment::FreeBlocks() const {
  const uint32_t groups = groups_ready_.load(std::memory_order_acquire);
  int free = 0;
  for (uint32_t i = 0; i < groups; ++i) {
    free += std::popcount(free_blocks_[i].load(std::memory_order_relaxed));
  }
  return static_cast<uint32_t>(free);
}

// 0: none is free.
uint32_t Segment::TakeSlot() {
  const uint32_t ready = slots_ready_.load(std::memory_order_acquire);
  for (uint32_t word = 0; word < ready / 64; ++word) {
    uint64_t free = free_slots_[word].load(std::memory_order_relaxed);
    while (free != 0 && !free_slots_[word].compare_exchange_weak(free, free & (free - 1),
                                                                 std::memory_order_acquire)) {
    }
    if (free != 0) return word * 64 + static_cast<uint32_t>(std::countr_zero(free));
  }
  return 0;
}

WriterSlot* Segment::AcquireSlot(proto::WriterKind kind, int32_t thread, const char name[16]) {
  // A chunk for the new thread, which makes system calls now anyway.
  if (FreeBlocks() < kGroupBlocks) (void)GrowOnUserThread();
  uint32_t index = TakeSlot();
  while (index == 0) {
    const bool grew = GrowInTurn([this] { return GrowSlots(); });
    index = TakeSlot();
    if (!grew && index == 0) return nullptr;
  }
  live_writers_.fetch_add(1, std::memory_order_relaxed);
  WriterSlot& slot = slots_[index];
  slot.state.store(static_cast<uint32_t>(WriterState::kLive), std::memory_order_relaxed);
  slot.kind = static_cast<uint32_t>(kind);
  slot.thread = thread;
  std::memcpy(slot.name, name, sizeof(slot.name));
  slot.produced.store(0, std::memory_order_relaxed);
  for (auto& lost : slot.lost) lost.store(0, std::memory_order_relaxed);
  slot.open_api.store(0, std::memory_order_relaxed);
  slot.first_chunk.store(0, std::memory_order_relaxed);
  slot.work_ended.store(0, std::memory_order_relaxed);
  slot.id.store(header_->next_writer.fetch_add(1, std::memory_order_relaxed),
                std::memory_order_release);
  uint32_t used = slots_used_.load(std::memory_order_relaxed);
  while (used <= index && !slots_used_.compare_exchange_weak(used, index + 1)) {
  }
  return &slot;
}

void Segment::ReleaseSlot(WriterSlot& slot) {
  slot.id.store(0, std::memory_order_relaxed);
  slot.state.store(static_cast<uint32_t>(WriterState::kFree), std::memory_order_release);
  live_writers_.fetch_sub(1, std::memory_order_relaxed);
  const auto index = static_cast<uint32_t>(&slot - slots_);
  free_slots_[index / 64].fetch_or(uint64_t{1} << (index % 64), std::memory_order_release);
}

void Segment::WriteClock(const ClockReading& reading) {
  proto::LastWords& words = header_->last_words;
  words.clock_sequence.fetch_add(1, std::memory_order_acquire);
  words.tsc.store(reading.tsc, std::memory_order_relaxed);
  words.monotonic_raw_ns.store(reading.monotonic_raw_ns, std::memory_order_relaxed);
  words.realtime_ns.store(reading.realtime_ns, std::memory_order_relaxed);
  words.spread_ns.store(reading.spread_ns, std::memory_order_relaxed);
  words.clock_sequence.fetch_add(1, std::memory_order_release);
}

void Segment::ReplaceInForkChild() {
  if (header_ == nullptr) return;
  (void)mmap(header_, bytes_, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

}  // namespace ranktap::agent
