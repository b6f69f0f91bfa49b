// Fills a sink from the rings: events, farewells, accounts.
// Runs on: the sender thread; at exit the exiting thread.  May not: as sender.cc.
#include "agent/transport/ring_delivery.h"

#include <sched.h>

#include <span>
#include <utility>

#include "agent/core/host_clock.h"
#include "agent/core/tell_again.h"
#include "agent/transport/messages.h"
#include "proto/encode_entry.h"

namespace ranktap::agent {

using proto::FrameType;

namespace {

constexpr uint64_t kMillisecondNs = 1'000'000;
// A frame is worth sending at 32 KiB of ring (about 1,000 events: the header's 136 bytes are then
// one part in fifty), or when its first event is this old.
constexpr size_t kWorthSending = 32 << 10;
constexpr uint64_t kFlushEvery = 100 * kMillisecondNs;

}  // namespace

RingDelivery::RingDelivery(Segment& segment, const Arena& arena, const CollectorLink& link,
                           SpoolReplay& replay)
    : segment_(segment),
      link_(link),
      replay_(replay),
      reader_(segment),
      dictionary_(segment, arena) {
  // Columns are at most about as long as what they are made of.
  constexpr size_t kPayloadBytes = 512 << 10, kMessageBytes = 4 << 10;
  encoder_.Reserve(RingReader::kMostEvents);
  payload_.reserve(kPayloadBytes);
  message_.reserve(kMessageBytes);
}

void RingDelivery::Begin(const Welcome& welcome) {
  for (const auto& [writer, next_event] : welcome.positions) reader_.SkipTo(writer, next_event);
  tell_again_every_ns_ = welcome.tell_again_ms * kMillisecondNs;
  tell_again_at_ns_ = NowNs() + tell_again_every_ns_;
}

template <typename Append>
void RingDelivery::PutMessage(FrameSink& sink, FrameType type, Append&& append) {
  message_.clear();
  append(message_);
  sink.Put({.type = type}, std::as_bytes(std::span(message_)));
}

RingDelivery::Sent RingDelivery::SendEvents(FrameSink& sink) {
  reader_.Discover();
  const uint64_t now = NowNs();
  const bool flush = now >= flush_at_ns_;
  if (flush) flush_at_ns_ = now + kFlushEvery;
  tells_again_ = tell_again_every_ns_ != 0 && now >= tell_again_at_ns_ && !IsSpool(sink);
  Sent sent;
  while (!sink.IsBehind() && !in_flight_.full()) {
    const auto batch = reader_.TakeBatch(flush ? 1 : kWorthSending, encoder_);
    if (!batch) break;
    sent.refused = !SendBatch(sink, *batch);
    if (sent.refused) break;
    sent.any = true;
  }
  return sent;
}

bool RingDelivery::SendBatch(FrameSink& sink, const RingReader::Batch& batch) {
  const proto::WriterSlot& slot = segment_.slot(batch.slot);
  if (reader_.Introduce(batch.slot)) {
    ++writers_seen_;
    PutMessage(sink, FrameType::kDictionary,
               [&](std::string& bytes) { AppendWriter(slot, bytes); });
  }
  if (tells_again_) TellAgain(sink);
  // Before a sink has the batch: what it has must be noted.
  if (IsSpool(sink)) replay_.NoteBatch(batch.writer, batch.first_event);
  payload_.clear();
  encoder_.Encode(dictionary_, payload_);
  for (const std::string& definitions : dictionary_.TakeDefinitions()) {
    sink.Put({.type = FrameType::kDictionary}, std::as_bytes(std::span(definitions)));
  }
  proto::FrameLossCounts lost;
  for (size_t i = 0; i < lost.size(); ++i) lost[i] = slot.lost[i].load(std::memory_order_relaxed);
  sink.Put({.type = FrameType::kEvents,
            .writer = batch.writer,
            .first_event = batch.first_event,
            .events = batch.events,
            .lost = lost},
           std::as_bytes(std::span(payload_)));
  return Commit(sink, {.slot = batch.slot,
                       .next_event = batch.first_event + batch.events,
                       .farewell = false,
                       .writer = batch.writer,
                       .first_event = batch.first_event,
                       .frame = 0});
}

void RingDelivery::TellAgain(FrameSink& sink) {
  tells_again_ = false;
  tell_again_at_ns_ = NowNs() + tell_again_every_ns_;
  sink.Put({.type = FrameType::kDictionary}, std::as_bytes(std::span(proto::kToldAgainMessage)));
  dictionary_.TellAgain();
  g_tell_again.fetch_add(1, std::memory_order_relaxed);
}

RingDelivery::Sent RingDelivery::SendFarewells(FrameSink& sink) {
  Sent sent;
  for (const uint32_t slot : reader_.FinishedSlots()) {
    if (in_flight_.full()) break;
    PutMessage(sink, FrameType::kAccounts, [&](std::string& bytes) {
      AppendAccount(segment_.slot(slot), reader_.Committed(slot), bytes);
    });
    const InFlight farewell{
        .slot = slot, .next_event = 0, .farewell = true, .writer = 0, .first_event = 0, .frame = 0};
    sent.refused = !Commit(sink, farewell);
    if (sent.refused) break;
    sent.any = true;
  }
  return sent;
}

bool RingDelivery::Commit(FrameSink& sink, InFlight sent) {
  switch (sink.Commit()) {
    case FrameSink::Stored::kNow:
      if (!sent.farewell) replay_.NoteStored(sent.writer, sent.next_event);
      segment_.WriteSpooled(true);
      GiveBack(sent);
      return true;
    case FrameSink::Stored::kOnAck:
      sent.frame = link_.frames_queued();
      in_flight_.push_back(sent);
      return true;
    case FrameSink::Stored::kNever:
      break;
  }
  return false;
}

void RingDelivery::GiveBack(const InFlight& done) {
  if (done.farewell) {
    reader_.Release(done.slot);
  } else {
    reader_.Acknowledge(done.slot, done.next_event);
  }
}

void RingDelivery::Acknowledge(uint64_t frames) {
  while (!in_flight_.empty() && in_flight_.front().frame <= frames) {
    GiveBack(in_flight_.front());
    in_flight_.pop_front();
  }
}

void RingDelivery::StartOver() {
  for (size_t i = 0; i < in_flight_.size(); ++i) {
    const InFlight& sent = in_flight_[i];
    if (!sent.farewell) reader_.KeepBound(sent.slot, sent.next_event);
  }
  in_flight_.clear();
  dictionary_.Forget();
  reader_.Rewind();
}

// A drain that was about to arm when the program ended may still emit: what the account says must
// be of one moment.
void RingDelivery::AppendAccountAtRest(uint32_t index, std::string& accounts) {
  constexpr int kTries = 1000;
  const proto::WriterSlot& slot = segment_.slot(index);
  const size_t before = accounts.size();
  for (int i = 0; i < kTries; ++i) {
    const uint64_t produced = slot.produced.load(std::memory_order_acquire);
    reader_.Discover();
    uint64_t placed = reader_.Committed(index);
    accounts.resize(before);
    AppendAccount(slot, placed, accounts);
    for (const auto& lost : slot.lost) placed += lost.load(std::memory_order_relaxed);
    if (placed == produced && slot.produced.load(std::memory_order_acquire) == produced) break;
    sched_yield();
  }
}

void RingDelivery::PutAccountsAtRest(FrameSink& sink) {
  PutMessage(sink, FrameType::kAccounts, [this](std::string& accounts) {
    for (uint32_t slot = 0; slot < segment_.slots_used(); ++slot) {
      if (segment_.slot(slot).id.load(std::memory_order_acquire) == 0) continue;
      AppendAccountAtRest(slot, accounts);
    }
  });
}

}  // namespace ranktap::agent
