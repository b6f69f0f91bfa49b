// The shared memory segment.
// Runs on: see segment.h.  May not: trust nothing here; this side writes it.
#include "agent/core/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace ranktap::agent {

using proto::Chunk;
using proto::WriterSlot;
using proto::WriterState;

bool Segment::Create(uint64_t bytes, const uint8_t session[16]) {
  // A quarter for names, the rest for rings, as in the default 24 + 8 MiB.
  const uint64_t ring_bytes = bytes / 4 * 3;
  uint32_t chunks = static_cast<uint32_t>(ring_bytes / proto::kChunkBytes);
  if (chunks > kMaxChunks) chunks = kMaxChunks;
  const proto::SegmentLayout layout = proto::LayOutSegment(bytes, chunks);
  if (chunks == 0 || layout.arena_bytes == 0) {
    errno = EINVAL;
    return false;
  }

  const int fd = memfd_create("ranktap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return false;
  // Inherited by fork children: a hook that a signal handler forked in goes on in the child, and
  // where atfork handlers do not run (_Fork, the system call) it would touch a hole.
  void* base = MAP_FAILED;
  // posix_fallocate would write zeros byte by byte where the file system cannot allocate.
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0 &&
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
  chunks_ = start + layout.chunks_offset;
  arena_ = start + layout.arena_offset;
  header_ = new (start) proto::SegmentHeader{};
  slots_ = reinterpret_cast<WriterSlot*>(start + layout.slots_offset);
  header_->version = proto::kSegmentVersion;
  header_->header_bytes = sizeof(proto::SegmentHeader);
  header_->segment_bytes = bytes;
  header_->writer_slots = proto::kWriterSlots;
  header_->chunk_count = chunks;
  header_->chunk_bytes = proto::kChunkBytes;
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
  for (uint32_t i = 0; i < chunks; ++i) {
    free_chunks_[i / 64].fetch_or(uint64_t{1} << (i % 64), std::memory_order_relaxed);
  }
  constexpr uint32_t kFirstChunks = 8;
  Prefault(kFirstChunks);
  header_->magic = proto::kSegmentMagic;
  return true;
}

int Segment::fd() const { return fd_.get(); }

bool Segment::Prefault(uint32_t chunks) {
  const uint32_t last = std::min(prefaulted_chunks_ + chunks, chunk_count());
  if (last == prefaulted_chunks_) return false;
  // Kernels before 5.14 cannot, and then it is as if we had not asked.
  (void)madvise(&chunk(prefaulted_chunks_),
                uint64_t{last - prefaulted_chunks_} * proto::kChunkBytes, MADV_POPULATE_WRITE);
  prefaulted_chunks_ = last;
  return true;
}

Chunk* Segment::LendChunk(uint32_t writer, uint64_t first_event, uint32_t ordinal,
                          Chunk*& pending) {
  const uint32_t words = (chunk_count() + 63) / 64;
  for (uint32_t word = 0; word < words; ++word) {
    uint64_t free = free_chunks_[word].load(std::memory_order_relaxed);
    while (free != 0) {
      const int bit = std::countr_zero(free);
      if (!free_chunks_[word].compare_exchange_weak(free, free & ~(uint64_t{1} << bit),
                                                    std::memory_order_acquire)) {
        continue;
      }
      Chunk& taken = chunk(word * 64 + static_cast<uint32_t>(bit));
      pending = &taken;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // A drain after death reads the writer's id last: it must not find the old events behind it.
      taken.committed.store(0, std::memory_order_relaxed);
      taken.magic = proto::kChunkMagic;
      taken.first_event = first_event;
      taken.ordinal = ordinal;
      taken.next.store(0, std::memory_order_relaxed);
      taken.writer.store(writer, std::memory_order_release);
      return &taken;
    }
  }
  return nullptr;
}

void Segment::ReturnChunk(Chunk& returned) {
  returned.writer.store(0, std::memory_order_relaxed);
  const uint32_t index = IndexOf(returned);
  free_chunks_[index / 64].fetch_or(uint64_t{1} << (index % 64), std::memory_order_release);
}

uint32_t Segment::FreeChunks() const {
  int free = 0;
  for (const auto& word : free_chunks_) free += std::popcount(word.load(std::memory_order_relaxed));
  return static_cast<uint32_t>(free);
}

WriterSlot* Segment::AcquireSlot(proto::WriterKind kind, int32_t thread, const char name[16]) {
  const uint32_t start = slot_hint_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < proto::kWriterSlots - 1; ++i) {
    const uint32_t index = 1 + (start - 1 + i) % (proto::kWriterSlots - 1);
    WriterSlot& slot = slots_[index];
    auto expected = static_cast<uint32_t>(WriterState::kFree);
    if (slot.state.load(std::memory_order_relaxed) != expected ||
        !slot.state.compare_exchange_strong(expected, static_cast<uint32_t>(WriterState::kLive),
                                            std::memory_order_acquire)) {
      continue;
    }
    slot_hint_.store(index % (proto::kWriterSlots - 1) + 1, std::memory_order_relaxed);
    slot.kind = static_cast<uint32_t>(kind);
    slot.thread = thread;
    std::memcpy(slot.name, name, sizeof(slot.name));
    slot.produced.store(0, std::memory_order_relaxed);
    for (auto& lost : slot.lost) lost.store(0, std::memory_order_relaxed);
    slot.open_api.store(0, std::memory_order_relaxed);
    slot.first_chunk.store(0, std::memory_order_relaxed);
    slot.id.store(header_->next_writer.fetch_add(1, std::memory_order_relaxed),
                  std::memory_order_release);
    return &slot;
  }
  return nullptr;
}

void Segment::ReleaseSlot(WriterSlot& slot) {
  slot.id.store(0, std::memory_order_relaxed);
  slot.state.store(static_cast<uint32_t>(WriterState::kFree), std::memory_order_release);
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
  mmap(header_, bytes_, PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

}  // namespace ranktap::agent
