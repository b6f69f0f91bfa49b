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

RingReader::RingReader(Segment& segment) : segment_(segment), cursors_(proto::kWriterSlots) {}

uint64_t RingReader::EndOf(const Chunk& chunk) {
  return chunk.first_event +
         proto::CommittedEvents(chunk.committed.load(std::memory_order_acquire));
}

void RingReader::Discover() {
  for (uint32_t index = 1; index < proto::kWriterSlots; ++index) {
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
      if (first != 0) cursor.chunks.push_back(&segment_.chunk(first - 1));
    }
  }
}

// Moves on to the chunk after the one being read, where the writer has gone there already.
bool RingReader::AdvanceChunk(Cursor& cursor) {
  if (cursor.reading + 1 == cursor.chunks.size()) {
    const uint32_t next = cursor.chunks[cursor.reading]->next.load(std::memory_order_acquire);
    if (next == 0) return false;
    cursor.chunks.push_back(&segment_.chunk(next - 1));
  }
  ++cursor.reading;
  cursor.offset = 0;
  return true;
}

std::optional<RingReader::Batch> RingReader::TakeBatch(size_t min_bytes,
                                                       proto::EventEncoder& encoder) {
  for (uint32_t i = 0; i < proto::kWriterSlots; ++i) {
    const uint32_t slot = (next_slot_ + i) % proto::kWriterSlots;
    if (cursors_[slot].chunks.empty()) continue;
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
    Chunk& chunk = *cursor.chunks[cursor.reading];
    // Before `committed`: when the chain goes on, what we read after it is all of this chunk.
    const bool closed = chunk.next.load(std::memory_order_acquire) != 0;
    const uint64_t committed = chunk.committed.load(std::memory_order_acquire);
    const uint32_t unsent = proto::CommittedBytes(committed) - cursor.offset;
    if (unsent == 0) {
      if (!closed || !AdvanceChunk(cursor)) return std::nullopt;
      continue;
    }
    if (!closed && unsent < min_bytes) return std::nullopt;
    Batch batch{.slot = slot, .writer = cursor.writer, .first_event = cursor.sent, .events = 0};
    const uint32_t end = proto::CommittedBytes(committed);
    const auto bound = cursor.bounds.upper_bound(cursor.sent);
    const uint64_t most = bound == cursor.bounds.end() ? UINT64_MAX : *bound - cursor.sent;
    while (cursor.offset < end && batch.events < most) {
      const auto* event = reinterpret_cast<const EventHeader*>(chunk.data() + cursor.offset);
      // The program wrote over our memory: this writer stops here, its ring fills up and counts.
      if (!encoder.Add(event, end - cursor.offset)) break;
      cursor.offset += event->bytes;
      ++batch.events;
    }
    if (batch.events == 0) return std::nullopt;
    cursor.sent += batch.events;
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
  while (cursor.reading > 0 && EndOf(*cursor.chunks.front()) <= cursor.acknowledged) {
    segment_.ReturnChunk(*cursor.chunks.front());
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
    cursor.sent = cursor.chunks.front()->first_event;
  }
  for (Cursor& cursor : cursors_) {
    if (cursor.writer != 0) SkipTo(cursor.writer, cursor.acknowledged);
  }
}

void RingReader::SkipTo(uint32_t writer, uint64_t next_event) {
  for (Cursor& cursor : cursors_) {
    if (cursor.writer != writer || cursor.chunks.empty()) continue;
    while (cursor.sent < next_event) {
      const Chunk& chunk = *cursor.chunks[cursor.reading];
      const uint64_t committed = chunk.committed.load(std::memory_order_acquire);
      if (cursor.offset == proto::CommittedBytes(committed)) {
        if (!AdvanceChunk(cursor)) break;
        continue;
      }
      cursor.offset += reinterpret_cast<const EventHeader*>(chunk.data() + cursor.offset)->bytes;
      ++cursor.sent;
    }
    cursor.acknowledged = std::max(cursor.acknowledged, std::min(next_event, cursor.sent));
    ReturnFinishedChunks(cursor);
  }
}

std::vector<uint32_t> RingReader::FinishedSlots() {
  std::vector<uint32_t> finished;
  for (uint32_t index = 1; index < proto::kWriterSlots; ++index) {
    Cursor& cursor = cursors_[index];
    if (cursor.writer == 0 || cursor.farewell) continue;
    const auto state =
        static_cast<WriterState>(segment_.slot(index).state.load(std::memory_order_acquire));
    if (state != WriterState::kEnded) continue;
    // Its first chunk may have come after the last look: a short thread begins and ends between
    // two.
    if (cursor.chunks.empty() && segment_.slot(index).first_chunk.load() != 0) continue;
    if (Committed(index) != cursor.acknowledged) continue;
    cursor.farewell = true;
    finished.push_back(index);
  }
  return finished;
}

void RingReader::Release(uint32_t slot) {
  Cursor& cursor = cursors_[slot];
  for (Chunk* chunk : cursor.chunks) segment_.ReturnChunk(*chunk);
  cursor = Cursor{};
  segment_.ReleaseSlot(segment_.slot(slot));
}

bool RingReader::Empty() const {
  for (uint32_t index = 1; index < proto::kWriterSlots; ++index) {
    if (cursors_[index].writer != 0 && Committed(index) != cursors_[index].acknowledged) {
      return false;
    }
  }
  return true;
}

uint64_t RingReader::Committed(uint32_t slot) const {
  const Cursor& cursor = cursors_[slot];
  if (cursor.chunks.empty()) return cursor.sent;
  const Chunk* last = cursor.chunks.back();
  while (const uint32_t next = last->next.load(std::memory_order_acquire)) {
    last = &segment_.chunk(next - 1);
  }
  return EndOf(*last);
}

bool RingReader::Introduce(uint32_t slot) {
  return !std::exchange(cursors_[slot].introduced, true);
}

}  // namespace ranktap::agent
