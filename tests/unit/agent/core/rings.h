// Rings of this very process, and the reader that the sender uses.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "agent/core/arena.h"
#include "agent/core/capture_state.h"
#include "agent/core/segment.h"
#include "agent/core/writer.h"
#include "agent/transport/dictionary.h"
#include "agent/transport/ring_reader.h"
#include "proto/decode.h"

namespace ranktap::agent {

using proto::Loss;
using proto::RangeEndEvent;

inline constexpr uint8_t kSession[16] = {1, 2, 3};

// A process has one agent; the tests share it, each in threads of its own.
class Rings : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (segment_ != nullptr) return;
    segment_ = new Segment;
    ASSERT_TRUE(segment_->Create(32 << 20, kSession));
    ASSERT_TRUE(ThreadStates::Create(*segment_));
    ASSERT_TRUE(MapCapturePage());
    arena_ = new Arena;
    arena_->Attach(*segment_, new std::atomic<uint64_t>[Arena::kTableSlots]());
    reader_ = new RingReader(*segment_);
  }

  // Runs body on a thread with a writer of its own and returns its id.
  template <typename Body>
  uint32_t OnNewThread(Body body) {
    uint32_t writer = 0;
    std::thread([&] {
      ThreadState* thread = ThreadState::Current();
      ASSERT_NE(thread, nullptr);
      writer = thread->writer();
      body(*thread);
    }).join();
    return writer;
  }

  // Everything unsent, by writer, as the ids in RangeEnd events; acknowledged when `ack`.
  std::map<uint32_t, std::vector<uint64_t>> TakeAll(bool ack) {
    std::map<uint32_t, std::vector<uint64_t>> taken;
    proto::EventEncoder encoder;
    Dictionary ids(*segment_, *arena_);
    reader_->Discover();
    while (const auto batch = reader_->TakeBatch(1, encoder)) {
      std::string payload;
      encoder.Encode(ids, payload);
      std::vector<RangeEndEvent> rows;
      EXPECT_TRUE(proto::DecodeEvents(std::as_bytes(std::span(payload)), batch->events,
                                      [&]<typename Event>(const proto::Section<Event>& section) {
                                        if constexpr (std::is_same_v<Event, RangeEndEvent>) {
                                          return DecodeRows(section, &rows);
                                        }
                                        return true;
                                      }));
      auto& ranges = taken[batch->writer];
      EXPECT_EQ(batch->first_event, first_[batch->writer] + ranges.size());
      for (const auto& row : rows) ranges.push_back(row.range);
      if (ack) {
        reader_->Acknowledge(batch->slot, batch->first_event + batch->events);
        slots_[batch->writer] = batch->slot;
      }
    }
    if (ack) {
      for (const auto& [writer, ranges] : taken) first_[writer] += ranges.size();
      for (const uint32_t slot : reader_->FinishedSlots()) reader_->Release(slot);
    }
    return taken;
  }

  static void EmitRanges(ThreadState& thread, uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      // As the sender would; the rings grow as they are used.
      if (i % 10'000 == 0) segment_->Grow();
      thread.Emit(RangeEndEvent{.time_ticks = 1, .range = first + i});
    }
  }

  static void EmitSome(ThreadState& thread, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) thread.Emit(RangeEndEvent{.time_ticks = 1, .range = i});
  }

  static proto::LossCounts LossesOf(const proto::WriterSlot& slot) {
    proto::LossCounts lost;
    for (size_t i = 0; i < lost.size(); ++i) lost[i] = slot.lost[i];
    return lost;
  }

  static proto::WriterSlot& SlotOf(uint32_t writer) {
    for (uint32_t i = 1; i < segment_->slots_used(); ++i) {
      if (segment_->slot(i).id == writer) return segment_->slot(i);
    }
    ADD_FAILURE() << "writer " << writer << " has no slot";
    return segment_->shared_slot();
  }

  static inline Segment* segment_ = nullptr;
  static inline Arena* arena_ = nullptr;
  static inline RingReader* reader_ = nullptr;
  static inline std::map<uint32_t, uint64_t> first_;
  static inline std::map<uint32_t, uint32_t> slots_;
};

}  // namespace ranktap::agent
