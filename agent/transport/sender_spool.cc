// The sender without a collector, and what it does for the next one.
// Runs on: the sender thread; FinishInSpool on the exiting thread.  May not: as sender.cc.
#include <sched.h>
#include <time.h>

#include "agent/core/host_clock.h"
#include "agent/transport/sender.h"

namespace ranktap::agent {

using proto::FrameStatus;
using proto::FrameType;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// An outage this long may be for good: a kill would take what only the rings hold.
constexpr uint64_t kSpoolAfter = 1 * kSecond;
constexpr uint64_t kSpoolRetry = 1 * kSecond;
constexpr size_t kReplayPiece = 256 << 10;

uint64_t NowNs() { return ClockNs(CLOCK_MONOTONIC); }

}  // namespace

bool Sender::WorthSpooling() {
  if (!spool_.enabled() || refused_for_good_ || NowNs() < spool_retry_at_ns_) return false;
  if (spooling_ && spool_.open()) return true;
  reader_.Discover();
  if (reader_.Empty()) return false;
  return NowNs() - alone_since_ns_ >= kSpoolAfter ||
         segment_.FreeChunks() < segment_.chunk_count() / 2;
}

void Sender::StopSpooling() {
  spool_.Discard();
  StartOver();
  spooling_ = false;
  spool_retry_at_ns_ = NowNs() + kSpoolRetry;
}

void Sender::SpoolRound() {
  if (!WorthSpooling()) return;
  if (!spool_.open() || !spooling_) {
    StartOver();
    spooling_ = spool_.Open(setup_.hello);
    if (!spooling_) return StopSpooling();
  }
  SendAnnouncements();
  SendPeriodic(/*last=*/false);
  SendEvents();
  SendFarewells();
  if (spooling_ && !spool_.Commit()) StopSpooling();
}

// A drain that was about to arm when the program ended may still emit: what the account says must
// be of one moment.
std::string Sender::AccountAtRest(uint32_t index) {
  constexpr int kTries = 1000;
  const proto::WriterSlot& slot = segment_.slot(index);
  std::string account;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t produced = slot.produced.load(std::memory_order_acquire);
    reader_.Discover();
    uint64_t placed = reader_.Committed(index);
    account = EncodeAccount(slot, placed);
    for (const auto& lost : slot.lost) placed += lost.load(std::memory_order_relaxed);
    if (placed == produced && slot.produced.load(std::memory_order_acquire) == produced) break;
    sched_yield();
  }
  return account;
}

void Sender::FinishInSpool(uint64_t deadline_ns) {
  spool_retry_at_ns_ = 0;
  reader_.Discover();
  if (!spool_.enabled() || refused_for_good_ || (reader_.Empty() && !spool_.open())) return;
  StartOver();
  spooling_ = spool_.Open(setup_.hello);
  if (!spooling_) return;
  SendAnnouncements();
  SendPeriodic(/*last=*/true);
  flush_at_ns_ = 0;
  while (spooling_ && !reader_.Empty() && NowNs() < deadline_ns) {
    flush_at_ns_ = 0;
    if (!SendEvents()) break;
  }
  // Full: what did not go in is missing between the frames and the accounts.
  spooling_ = true;
  for (uint32_t slot = 0; slot < proto::kWriterSlots; ++slot) {
    if (segment_.slot(slot).id.load(std::memory_order_acquire) == 0) continue;
    const std::string account = AccountAtRest(slot);
    Put({.type = FrameType::kAccounts}, std::as_bytes(std::span(account)));
  }
  const std::string goodbye = EncodeGoodbye();
  Put({.type = FrameType::kGoodbye}, std::as_bytes(std::span(goodbye)));
  (void)spool_.Commit(FileSpool::Room::kLastWords);
}

bool Sender::Replay() {
  while (link_.unsent_bytes() < kMaxQueuedBytes) {
    std::span<const std::byte> piece = spool_.Read(replay_offset_, kReplayPiece);
    const size_t before = piece.size();
    while (true) {
      const proto::FrameView frame = proto::DecodeFrame(piece);
      if (frame.status != FrameStatus::kComplete) break;
      piece = piece.subspan(frame.consumed);
      const proto::FrameHeader& header = frame.header;
      const auto stored = stored_.find(header.writer);
      const bool has_it = header.type == FrameType::kEvents && stored != stored_.end() &&
                          header.first_event < stored->second;
      if (header.type == FrameType::kHello || has_it) continue;
      link_.Queue({.type = header.type,
                   .writer = header.writer,
                   .first_event = header.first_event,
                   .events = header.events,
                   .lost = header.lost},
                  frame.payload);
    }
    replay_offset_ += before - piece.size();
    if (piece.size() == before) {  // the end, or the file is damaged from here on
      replayed_by_frame_ = link_.frames_queued();
      return true;
    }
  }
  return false;
}

}  // namespace ranktap::agent
