// Fills the sender's sink: announcements, readings, events, farewells.
// Runs on: the sender thread; at exit the exiting thread.  May not: as sender.cc.
#include <utility>

#include "agent/core/host_clock.h"
#include "agent/transport/sender.h"

namespace ranktap::agent {

using proto::FrameType;

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
// A frame is worth sending at 32 KiB of ring (about 1,000 events: the header's 136 bytes are then
// one part in fifty), or when its first event is this old.
constexpr size_t kWorthSending = 32 << 10;
constexpr uint64_t kFlushEvery = 100 * kMillisecond;
constexpr uint32_t kEarlyReadings = 2;

}  // namespace

// No list of its own: one that could not grow would lose what it was to hold.
void Sender::SendAnnouncements() {
  Announcement** end = unsaid_;
  while (*end != nullptr) end = &(*end)->next;
  *end = TakeAnnouncements();
  while (Announcement* const next = *unsaid_) {
    Put(next->type, next->payload);
    if (next->keep) {
      unsaid_ = &next->next;
    } else {
      *unsaid_ = next->next;
      delete next;
    }
  }
}

void Sender::SendPeriodic(bool last) {
  const uint64_t now = NowNs();
  if (now < periodic_at_ns_ && !last) return;
  // Two readings close together at first: the map between the clocks needs two.
  periodic_at_ns_ = now + (clock_readings_++ < kEarlyReadings ? kSecond / 50 : kSecond);
  setup_.on_beat();
  const ClockReading reading = ReadClocks();
  segment_.WriteClock(reading);
  PutMessage(FrameType::kClock, [&](std::string& bytes) { AppendClock(reading, bytes); });
  CostFields cost{};
  setup_.add_cost(cost);
  cost.sender_cpu_ns = cpu_ns_;
  cost.frames = frames_total_ + link_.frames_queued();
  cost.bytes = bytes_total_ + link_.bytes_sent();
  cost.threads = writers_seen_;
  const ResidentMemory memory = memory_.Read();
  cost.resident_bytes = memory.now;
  cost.peak_resident_bytes = memory.peak;
  PutMessage(FrameType::kCost, [&](std::string& bytes) { AppendCost(cost, bytes); });
  if (last) memory_.Close();
}

// True when there was anything to send.
bool Sender::SendEvents() {
  reader_.Discover();
  const uint64_t now = NowNs();
  const bool flush = now >= flush_at_ns_;
  if (flush) flush_at_ns_ = now + kFlushEvery;
  bool any = false;
  while (!sink_->IsBehind() && !in_flight_.full()) {
    const auto batch = reader_.TakeBatch(flush ? 1 : kWorthSending, encoder_);
    if (!batch || !SendBatch(*batch)) break;
    any = true;
  }
  return any;
}

bool Sender::SendBatch(const RingReader::Batch& batch) {
  const proto::WriterSlot& slot = segment_.slot(batch.slot);
  if (reader_.Introduce(batch.slot)) {
    ++writers_seen_;
    PutMessage(FrameType::kDictionary, [&](std::string& bytes) { AppendWriter(slot, bytes); });
  }
  // Before a sink has the batch: what it has must be noted.
  if (Spooling()) {
    spooled_.try_emplace(batch.writer,
                         Spooled{.first = batch.first_event, .next = batch.first_event});
  }
  payload_.clear();
  encoder_.Encode(dictionary_, payload_);
  for (const std::string& definitions : dictionary_.TakeDefinitions()) {
    Put(FrameType::kDictionary, definitions);
  }
  proto::FrameLossCounts lost;
  for (size_t i = 0; i < lost.size(); ++i) lost[i] = slot.lost[i].load(std::memory_order_relaxed);
  sink_->Put({.type = FrameType::kEvents,
              .writer = batch.writer,
              .first_event = batch.first_event,
              .events = batch.events,
              .lost = lost},
             std::as_bytes(std::span(payload_)));
  return Commit({.slot = batch.slot,
                 .next_event = batch.first_event + batch.events,
                 .farewell = false,
                 .writer = batch.writer,
                 .first_event = batch.first_event,
                 .frame = 0});
}

void Sender::SendFarewells() {
  for (const uint32_t slot : reader_.FinishedSlots()) {
    if (in_flight_.full()) return;
    PutMessage(FrameType::kAccounts, [&](std::string& bytes) {
      AppendAccount(segment_.slot(slot), reader_.Committed(slot), bytes);
    });
    const InFlight farewell{
        .slot = slot, .next_event = 0, .farewell = true, .writer = 0, .first_event = 0, .frame = 0};
    if (!Commit(farewell)) return;
  }
}

}  // namespace ranktap::agent
