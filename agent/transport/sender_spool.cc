// The sender without a collector, and what it does for the next one.
// Runs on: the sender thread; FinishInSpool on the exiting thread.  May not: as sender.cc.
#include <sched.h>
#include <time.h>

#include <algorithm>

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

}  // namespace

bool Sender::WorthSpooling() {
  if (!spool_.enabled() || NowNs() < spool_retry_at_ns_) return false;
  if (Spooling() && spool_.open()) return true;
  reader_.Discover();
  if (reader_.Empty()) return false;
  return NowNs() - alone_since_ns_ >= kSpoolAfter ||
         segment_.LentBlocks() > segment_.AllBlocks() / 2;
}

void Sender::DeclareGone() {
  for (const auto& [writer, spooled] : spooled_) {
    const auto stored = stored_.find(writer);
    const uint64_t first =
        stored == stored_.end() ? spooled.first : std::max(spooled.first, stored->second);
    if (first >= spooled.next) continue;
    const LostEvents gone{.writer = writer,
                          .first_event = first,
                          .events = spooled.next - first,
                          .loss = proto::Loss::kStore};
    PutMessage(FrameType::kLoss, [&](std::string& bytes) { AppendLostRange(gone, bytes); });
  }
}

bool Sender::OpenSpool() {
  StartOver();
  const uint32_t files = spool_.files_made();
  if (!spool_.Open(setup_.hello)) return false;
  sink_ = &spool_;
  if (spool_.files_made() == files) return true;
  // Before any event: a file that goes on after what is gone must say so from the start.
  DeclareGone();
  if (spool_.Commit() == FrameSink::Stored::kNow) return true;
  spool_.Remove();
  return false;
}

void Sender::StopSpooling() {
  spool_.Discard();
  StartOver();
  sink_ = &link_;
  spool_retry_at_ns_ = NowNs() + kSpoolRetry;
}

void Sender::SpoolRound() {
  if (!WorthSpooling()) return;
  if ((!spool_.open() || !Spooling()) && !OpenSpool()) return StopSpooling();
  SendAnnouncements();
  SendPeriodic(/*last=*/false);
  SendEvents();
  if (Spooling()) SendFarewells();
  if (Spooling() && spool_.Commit() == FrameSink::Stored::kNever) StopSpooling();
}

// A drain that was about to arm when the program ended may still emit: what the account says must
// be of one moment.
void Sender::AppendAccountAtRest(uint32_t index, std::string& accounts) {
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

void Sender::FinishInSpool(uint64_t deadline_ns) {
  spool_retry_at_ns_ = 0;
  reader_.Discover();
  if (!spool_.enabled() || peer_ == Peer::kRefused) return;
  if (reader_.Empty() && !spool_.open()) return;
  reader_.KeepChunks();
  if (!OpenSpool()) return;
  SendAnnouncements();
  SendPeriodic(/*last=*/true);
  flush_at_ns_ = 0;
  while (Spooling() && !reader_.Empty() && NowNs() < deadline_ns) {
    flush_at_ns_ = 0;
    if (!SendEvents()) break;
  }
  // Full: what did not go in is missing between the frames and the accounts.
  sink_ = &spool_;
  PutMessage(FrameType::kAccounts, [this](std::string& accounts) {
    for (uint32_t slot = 0; slot < segment_.slots_used(); ++slot) {
      if (segment_.slot(slot).id.load(std::memory_order_acquire) == 0) continue;
      AppendAccountAtRest(slot, accounts);
    }
  });
  Put(FrameType::kGoodbye, EncodeGoodbye());
  (void)spool_.CommitLastWords();
}

bool Sender::Replay() {
  while (!link_.IsBehind()) {
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
      if (header.type == FrameType::kEvents) {
        stored_[header.writer] = header.first_event + header.events;
      }
      link_.Put({.type = header.type,
                 .writer = header.writer,
                 .first_event = header.first_event,
                 .events = header.events,
                 .lost = header.lost},
                frame.payload);
    }
    replay_offset_ += before - piece.size();
    if (piece.size() == before) {
      // The end; or the file is damaged from here on, or was taken away meanwhile.
      DeclareGone();
      replayed_by_frame_ = link_.frames_queued();
      return true;
    }
  }
  return false;
}

}  // namespace ranktap::agent
