// Walks each writer's chain of chunks.
// Runs on: the sender thread.  May not: trust that a writer is idle, it appends while we read;
// allocate after the constructor.
#include "agent/transport/ring_reader.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace ranktap::agent {

using proto::Chunk;
using proto::EventHeader;
using proto::WriterSlot;
using proto::WriterState;

namespace {

// Bounds of two connections.
constexpr size_t kMostBounds = 32 << 10;

template <typename T>
T* Zeroed(size_t count) {
  void* const memory = std::calloc(count, sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

}  // namespace

void RingReader::Free::operator()(void* memory) const { std::free(memory); }

RingReader::RingReader(Segment& segment)
    : segment_(segment),
      cursors_(Zeroed<Cursor>(proto::kMaxWriterSlots)),
      held_(Zeroed<Held>(segment.AllBlocks() + 1)) {
  bounds_.reserve(kMostBounds);
  finished_.reserve(proto::kMaxWriterSlots);
}

uint64_t RingReader::EndOf(uint32_t held) const {
  return held_[held].first_event +
         proto::CommittedEvents(ChunkOf(held).committed.load(std::memory_order_acquire));
}

// `index`: as in the shared memory. False: no such chunk is this writer's, so the program wrote
// over our memory.
bool RingReader::Hold(Cursor& cursor, uint32_t index, uint64_t first_event) {
  if (segment_.BlocksOf(index - 1) != 0 && held_[index].capacity == 0) {
    const Chunk& chunk = ChunkOf(index);
    if (chunk.writer.load(std::memory_order_acquire) == cursor.writer) {
      held_[index] = {
          .first_event = first_event, .capacity = segment_.CapacityOf(chunk), .next = 0};
      if (cursor.oldest == 0) {
        cursor.oldest = cursor.reading = index;
      } else {
        held_[cursor.newest].next = index;
      }
      cursor.newest = index;
      return true;
    }
  }
  cursor.damaged = true;
  return false;
}

void RingReader::Discover() {
  const uint32_t used = segment_.slots_used();
  for (uint32_t index = 1; index < used; ++index) {
    Cursor& cursor = cursors_[index];
    WriterSlot& slot = segment_.slot(index);
    if (cursor.writer == 0) {
      const uint32_t writer = slot.id.load(std::memory_order_acquire);
      if (writer == 0) continue;
      cursor = Cursor{};
      cursor.writer = writer;
    }
    if (cursor.oldest == 0 && cursor.sent == 0) {
      const uint32_t first = slot.first_chunk.load(std::memory_order_acquire);
      if (first != 0) (void)Hold(cursor, first, 0);
    }
  }
}

// Moves on to the chunk after the one being read, where the writer has gone there already.
bool RingReader::AdvanceChunk(Cursor& cursor) {
  if (cursor.reading == cursor.newest) {
    const uint32_t next = ChunkOf(cursor.newest).next.load(std::memory_order_acquire);
    if (next == 0 || !Hold(cursor, next, EndOf(cursor.newest))) return false;
  }
  cursor.reading = held_[cursor.reading].next;
  cursor.offset = 0;
  return true;
}

std::optional<RingReader::Batch> RingReader::TakeBatch(size_t min_bytes,
                                                       proto::EventEncoder& encoder) {
  const uint32_t used = segment_.slots_used();
  for (uint32_t i = 0; i < used; ++i) {
    const uint32_t slot = (next_slot_ + i) % used;
    if (cursors_[slot].oldest == 0 || cursors_[slot].damaged) continue;
    if (auto batch = TakeFrom(slot, min_bytes, encoder)) {
      next_slot_ = slot + 1;
      return batch;
    }
  }
  return std::nullopt;
}

std::optional<RingReader::Batch> RingReader::TakeFrom(uint32_t slot, size_t min_bytes,
                                                      proto::EventEncoder& encoder) {
  Cursor& cursor = cursors_[slot];
  while (true) {
    const Held& held = held_[cursor.reading];
    Chunk& chunk = ChunkOf(cursor.reading);
    // Before `committed`: when the chain goes on, what we read after it is all of this chunk.
    const bool closed = chunk.next.load(std::memory_order_acquire) != 0;
    const uint64_t committed = chunk.committed.load(std::memory_order_acquire);
    const uint32_t end = proto::CommittedBytes(committed);
    const uint64_t last = held.first_event + proto::CommittedEvents(committed);
    if (end > held.capacity || end < cursor.offset || last < cursor.sent ||
        (end == cursor.offset) != (last == cursor.sent)) {
      cursor.damaged = true;
      return std::nullopt;
    }
    if (end == cursor.offset) {
      if (!closed || !AdvanceChunk(cursor)) return std::nullopt;
      continue;
    }
    if (!closed && end - cursor.offset < min_bytes) return std::nullopt;
    Batch batch{.slot = slot, .writer = cursor.writer, .first_event = cursor.sent, .events = 0};
    const uint64_t most = std::min(BoundAfter(cursor, last), cursor.sent + kMostEvents);
    while (cursor.offset < end && cursor.sent < most) {
      const auto* event = reinterpret_cast<const EventHeader*>(chunk.data() + cursor.offset);
      if (!encoder.Add(event, end - cursor.offset)) {
        cursor.damaged = true;
        break;
      }
      cursor.offset += event->bytes;
      ++cursor.sent;
      ++batch.events;
    }
    if (batch.events == 0) return std::nullopt;
    return batch;
  }
}

void RingReader::Acknowledge(uint32_t slot, uint64_t next_event) {
  Cursor& cursor = cursors_[slot];
  cursor.acknowledged = std::max(cursor.acknowledged, next_event);
  ReturnFinishedChunks(cursor);
}

void RingReader::KeepBound(uint32_t slot, uint64_t next_event) {
  const Cursor& cursor = cursors_[slot];
  if (cursor.writer == 0 || next_event <= cursor.acknowledged) return;
  const Bound bound{.writer = cursor.writer, .next_event = next_event};
  const auto at = std::ranges::lower_bound(bounds_, bound);
  if ((at != bounds_.end() && *at == bound) || bounds_.size() == kMostBounds) return;
  bounds_.insert(at, bound);
}

// The first one behind what is sent, or `last`.
uint64_t RingReader::BoundAfter(const Cursor& cursor, uint64_t last) const {
  const auto at =
      std::ranges::upper_bound(bounds_, Bound{.writer = cursor.writer, .next_event = cursor.sent});
  return at == bounds_.end() || at->writer != cursor.writer ? last : std::min(last, at->next_event);
}

// Those that no batch will meet any more.
void RingReader::ForgetBounds() {
  const uint32_t used = segment_.slots_used();
  std::erase_if(bounds_, [this, used](const Bound& bound) {
    for (uint32_t slot = 1; slot < used; ++slot) {
      if (cursors_[slot].writer == bound.writer) {
        return bound.next_event <= cursors_[slot].acknowledged;
      }
    }
    return true;
  });
}

void RingReader::ReturnFinishedChunks(Cursor& cursor) {
  // Up to where the next one begins: what stands in the chunk itself may be written over.
  while (cursor.reading != cursor.oldest) {
    const uint32_t next = held_[cursor.oldest].next;
    if (held_[next].first_event > cursor.acknowledged) return;
    held_[cursor.oldest].capacity = 0;
    if (!keeps_chunks_) segment_.ReturnChunk(ChunkOf(cursor.oldest));
    cursor.oldest = next;
  }
}

void RingReader::Rewind() {
  const uint32_t used = segment_.slots_used();
  for (uint32_t slot = 1; slot < used; ++slot) {
    Cursor& cursor = cursors_[slot];
    cursor.introduced = false;
    cursor.farewell = false;
    if (cursor.oldest == 0) continue;
    cursor.reading = cursor.oldest;
    cursor.offset = 0;
    cursor.sent = held_[cursor.oldest].first_event;
    SkipTo(cursor, cursor.acknowledged);
  }
  ForgetBounds();
}

void RingReader::SkipTo(uint32_t writer, uint64_t next_event) {
  const uint32_t used = segment_.slots_used();
  for (uint32_t slot = 1; slot < used; ++slot) {
    if (cursors_[slot].writer == writer) SkipTo(cursors_[slot], next_event);
  }
}

void RingReader::SkipTo(Cursor& cursor, uint64_t next_event) {
  if (cursor.oldest == 0) return;
  while (cursor.sent < next_event) {
    Chunk& chunk = ChunkOf(cursor.reading);
    const uint64_t committed = chunk.committed.load(std::memory_order_acquire);
    const uint32_t end = std::min(proto::CommittedBytes(committed), held_[cursor.reading].capacity);
    if (cursor.offset >= end) {
      if (!AdvanceChunk(cursor)) break;
      continue;
    }
    const auto* event = reinterpret_cast<const EventHeader*>(chunk.data() + cursor.offset);
    if (!proto::EventEncoder::IsWellFormed(event, end - cursor.offset)) {
      cursor.damaged = true;
      break;
    }
    cursor.offset += event->bytes;
    ++cursor.sent;
  }
  cursor.acknowledged = std::max(cursor.acknowledged, std::min(next_event, cursor.sent));
  ReturnFinishedChunks(cursor);
}

const std::vector<uint32_t>& RingReader::FinishedSlots() {
  finished_.clear();
  const uint32_t used = segment_.slots_used();
  for (uint32_t index = 1; index < used; ++index) {
    Cursor& cursor = cursors_[index];
    if (cursor.writer == 0 || cursor.farewell) continue;
    const auto state =
        static_cast<WriterState>(segment_.slot(index).state.load(std::memory_order_acquire));
    if (state != WriterState::kEnded) continue;
    // Its first chunk may have come after the last look: a short thread begins and ends between
    // two.
    if (cursor.oldest == 0 && !cursor.damaged && segment_.slot(index).first_chunk.load() != 0) {
      continue;
    }
    if (Committed(index) != cursor.acknowledged) continue;
    cursor.farewell = true;
    finished_.push_back(index);
  }
  return finished_;
}

void RingReader::Release(uint32_t slot) {
  Cursor& cursor = cursors_[slot];
  for (uint32_t held = cursor.oldest; held != 0; held = held_[held].next) {
    held_[held].capacity = 0;
    segment_.ReturnChunk(ChunkOf(held));
  }
  cursor = Cursor{};
  segment_.ReleaseSlot(segment_.slot(slot));
}

bool RingReader::Empty() const {
  const uint32_t used = segment_.slots_used();
  for (uint32_t index = 1; index < used; ++index) {
    if (cursors_[index].writer != 0 && Committed(index) != cursors_[index].acknowledged) {
      return false;
    }
  }
  return true;
}

uint64_t RingReader::Committed(uint32_t slot) const {
  const Cursor& cursor = cursors_[slot];
  if (cursor.oldest == 0 || cursor.damaged) return cursor.sent;
  uint64_t end = EndOf(cursor.newest);
  uint32_t next = ChunkOf(cursor.newest).next.load(std::memory_order_acquire);
  // No longer than there are blocks, whatever the program wrote there.
  for (uint32_t i = 0; next != 0 && i < segment_.AllBlocks(); ++i) {
    if (segment_.BlocksOf(next - 1) == 0) break;
    const Chunk& chunk = segment_.chunk(next - 1);
    if (chunk.writer.load(std::memory_order_acquire) != cursor.writer) break;
    end += proto::CommittedEvents(chunk.committed.load(std::memory_order_acquire));
    next = chunk.next.load(std::memory_order_acquire);
  }
  return end;
}

bool RingReader::Introduce(uint32_t slot) {
  return !std::exchange(cursors_[slot].introduced, true);
}

}  // namespace ranktap::agent
