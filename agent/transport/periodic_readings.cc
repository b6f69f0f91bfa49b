// Reads the clocks and our costs.
// Runs on: see periodic_readings.h.  May not: as sender.cc.
#include "agent/transport/periodic_readings.h"

#include <time.h>

#include <span>
#include <string>

#include "agent/core/host_clock.h"
#include "agent/transport/messages.h"

namespace ranktap::agent {

using proto::FrameType;

void PeriodicReadings::NoteOwnTime() { cpu_ns_ = ClockNs(CLOCK_THREAD_CPUTIME_ID); }

void PeriodicReadings::AddConnection(const CollectorLink& link) {
  frames_ += link.frames_queued();
  bytes_ += link.bytes_sent();
}

bool PeriodicReadings::TakeTurn(bool last) {
  constexpr uint64_t kSecond = 1'000'000'000;
  constexpr uint32_t kEarlyTurns = 2;
  const uint64_t now = NowNs();
  if (now < due_at_ns_ && !last) return false;
  // Two readings close together at first: the map between the clocks needs two.
  due_at_ns_ = now + (turns_++ < kEarlyTurns ? kSecond / 50 : kSecond);
  return true;
}

void PeriodicReadings::PutClock(Segment& segment, FrameSink& sink) {
  const ClockReading reading = ReadClocks();
  segment.WriteClock(reading);
  message_.clear();
  AppendClock(reading, message_);
  sink.Put({.type = FrameType::kClock}, std::as_bytes(std::span(message_)));
}

void PeriodicReadings::PutCost(CostFields cost, const CollectorLink& link, FrameSink& sink) {
  cost.sender_cpu_ns = cpu_ns_;
  cost.frames = frames_ + link.frames_queued();
  cost.bytes = bytes_ + link.bytes_sent();
  const ResidentMemory memory = memory_.Read();
  cost.resident_bytes = memory.now;
  cost.peak_resident_bytes = memory.peak;
  message_.clear();
  AppendCost(cost, message_);
  sink.Put({.type = FrameType::kCost}, std::as_bytes(std::span(message_)));
}

}  // namespace ranktap::agent
