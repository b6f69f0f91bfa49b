// Once a second: the clocks, and what we cost the program.
// Runs on: the sender thread; at the end on the thread that ends.  May not: be used from two
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/core/cost_fields.h"
#include "agent/core/resident_memory.h"
#include "agent/core/segment.h"
#include "agent/transport/collector_link.h"
#include "agent/transport/frame_sink.h"

namespace ranktap::agent {

class PeriodicReadings {
 public:
  // Reserves what a turn needs: in steady state none allocates.
  PeriodicReadings() { message_.reserve(kMessageBytes); }

  // The thread notes its own time at each round: a thread of the program's tells the last costs.
  void NoteOwnTime();
  // A connection is about to be forgotten.
  void AddConnection(const CollectorLink& link);

  // True about once a second, and where it is the last time.
  bool TakeTurn(bool last);
  void PutClock(Segment& segment, FrameSink& sink);
  // `cost` has what others know.
  void PutCost(CostFields cost, const CollectorLink& link, FrameSink& sink);
  void Close() { memory_.Close(); }
  void CloseInForkChild() { memory_.CloseInForkChild(); }

 private:
  static constexpr size_t kMessageBytes = 1 << 10;

  ResidentMemoryReader memory_;
  std::string message_;
  uint64_t cpu_ns_ = 0;
  uint64_t due_at_ns_ = 0;
  uint64_t frames_ = 0, bytes_ = 0;  // of connections that are over
  uint32_t turns_ = 0;
};

}  // namespace ranktap::agent
