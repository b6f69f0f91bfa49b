// Walks each writer's chain of chunks.
// Runs on: the sender thread.  May not: trust that a writer is idle; it appends while we read.
#include "agent/transport/ring_reader.h"

#include <algorithm>
#include <utility>

namespace ranktap::agent {

using proto::Chunk;
using proto::EventHeader;
using proto::WriterSlot;
using proto::WriterState;

RingReader::RingReader(Segment& segment) : segment_(segment), cursors_(proto::kMaxWriterSlots) {}

uint64_t RingReader::EndOf(const Held& held) {
  return held.first_event +
         proto::CommittedEvents(held.chunk->committed.load(std::memory_order_acquire));
}

// `index`: as in the shared memory, one more than the block's. False: no such chunk is this
// writer's, so the program wrote over our memory.
bool RingReader::Hold(Cursor& cursor, uint32_t index, uint64_t first_event) {
  if (segment_.BlocksOf(index - 1) != 0) {
    Chunk& chunk = segment_.chunk(index - 1);
    if (chunk.writer.load(std::memory_order_acquire) == cursor.writer) {
      cursor.chunks.push_back(
          {.chunk = &chunk, .first_event = first_event, .capacity = segment_.CapacityOf(chunk)});
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
    if (cursor.chunks.empty() && cursor.sent == 0) {
      const uint32_t first = slot.first_chunk.load(std::memory_order_acquire);
      if (first != 0) (void)Hold(cursor, first, 0);
    }
  }
}

// Moves on to the chunk after the one being read, where the writer has gone there already.
bool RingReader::AdvanceChunk(Cursor& cursor) {
  if (cursor.reading + 1 == cursor.chunks.size()) {
    const Held& last = cursor.chunks[cursor.reading];
    const uint32_t next = last.chunk->next.load(std::memory_order_acquire);
    if (next == 0 || !Hold(cursor, next, EndOf(last))) return false;
  }
  ++cursor.reading;
  cursor.offset = 0;
  return true;
}

std::optional<RingReader::Batch> RingReader::TakeBatch(size_t min_bytes,
                                                       proto::EventEncoder& encoder) {
  const uint32_t used = segment_.slots_used();
  for (uint32_t i = 0; i < used; ++i) {
    const uint32_t slot = (next_slot_ + i) % used;
    if (cursors_[slot].chunks.empty() || cursors_[slot].damaged) continue;
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
    const Held& held = cursor.chunks[cursor.reading];
    // Before `committed`: when the chain goes on, what we read after it is all of this chunk.
    const bool closed = held.chunk->next.load(std::memory_order_acquire) != 0;
    const uint64_t committed = held.chunk->committed.load(std::memory_order_acquire);
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
    const auto bound = cursor.bounds.upper_bound(cursor.sent);
    const uint64_t most = std::min(last, bound == cursor.bounds.end() ? last : *bound);
    while (cursor.offset < end && cursor.sent < most) {
      const auto* event = reinterpret_cast<const EventHeader*>(held.chunk->data() + cursor.offset);
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
  Cursor& cursor = cursors_[slot];
  if (cursor.writer != 0 && next_event > cursor.acknowledged) cursor.bounds.insert(next_event);
}

void RingReader::ReturnFinishedChunks(Cursor& cursor) {
  cursor.bounds.erase(cursor.bounds.begin(), cursor.bounds.upper_bound(cursor.acknowledged));
  // Up to where the next one begins: what stands in the chunk itself may be written over.
  while (cursor.reading > 0 && cursor.chunks[1].first_event <= cursor.acknowledged) {
    if (!keeps_chunks_) segment_.ReturnChunk(*cursor.chunks.front().chunk);
    cursor.chunks.pop_front();
    --cursor.reading;
  }
}

void RingReader::Rewind() {
  for (Cursor& cursor : cursors_) {
    cursor.introduced = false;
    cursor.farewell = false;
    if (cursor.chunks.empty()) continue;
    cursor.reading = 0;
    cursor.offset = 0;
    cursor.sent = cursor.chunks.front().first_event;
  }
  for (Cursor& cursor : cursors_) {
    if (cursor.writer != 0) SkipTo(cursor, cursor.acknowledged);
  }
}

void RingReader::SkipTo(uint32_t writer, uint64_t next_event) {
  for (Cursor& cursor : cursors_) {
    if (cursor.writer == writer) SkipTo(cursor, next_event);
  }
}

void RingReader::SkipTo(Cursor& cursor, uint64_t next_event) {
  if (cursor.chunks.empty()) return;
  while (cursor.sent < next_event) {
    const Held& held = cursor.chunks[cursor.reading];
    const uint64_t committed = held.chunk->committed.load(std::memory_order_acquire);
    const uint32_t end = std::min(proto::CommittedBytes(committed), held.capacity);
    if (cursor.offset >= end) {
      if (!AdvanceChunk(cursor)) break;
      continue;
    }
    const auto* event = reinterpret_cast<const EventHeader*>(held.chunk->data() + cursor.offset);
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

std::vector<uint32_t> RingReader::FinishedSlots() {
  std::vector<uint32_t> finished;
  const uint32_t used = segment_.slots_used();
  for (uint32_t index = 1; index < used; ++index) {
    Cursor& cursor = cursors_[index];
    if (cursor.writer == 0 || cursor.farewell) continue;
    const auto state =
        static_cast<WriterState>(segment_.slot(index).state.load(std::memory_order_acquire));
    if (state != WriterState::kEnded) continue;
    // Its first chunk may have come after the last look: a short thread begins and ends between
    // two.
    if (cursor.chunks.empty() && !cursor.damaged && segment_.slot(index).first_chunk.load() != 0) {
      continue;
    }
    if (Committed(index) != cursor.acknowledged) continue;
    cursor.farewell = true;
    finished.push_back(index);
  }
  return finished;
}

void RingReader::Release(uint32_t slot) {
  Cursor& cursor = cursors_[slot];
  for (const Held& held : cursor.chunks) segment_.ReturnChunk(*held.chunk);
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
  if (cursor.chunks.empty() || cursor.damaged) return cursor.sent;
  const Held& last = cursor.chunks.back();
  uint64_t end = EndOf(last);
  uint32_t next = last.chunk->next.load(std::memory_order_acquire);
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
