// Reads the spool's frames for a new collector.
// Runs on: the sender thread; at exit the exiting thread.  May not: as sender.cc.
#include "agent/transport/spool_replay.h"

#include <algorithm>
#include <span>
#include <string>

namespace ranktap::agent {

using proto::FrameStatus;
using proto::FrameType;

void SpoolReplay::NoteBatch(uint32_t writer, uint64_t first_event) {
  spooled_.try_emplace(writer, Spooled{.first = first_event, .next = first_event});
}

void SpoolReplay::NoteStored(uint32_t writer, uint64_t next_event) {
  spooled_.find(writer)->second.next = next_event;
}

void SpoolReplay::Begin(const Welcome& welcome) {
  spools_are_taken_ = welcome.takes_spools;
  stored_.clear();
  for (const auto& [writer, next_event] : welcome.positions) stored_[writer] = next_event;
  offset_ = 0;
  last_frame_ = 0;
}

bool SpoolReplay::Acknowledge(uint64_t frames) {
  if (last_frame_ == 0 || frames < last_frame_) return false;
  spooled_.clear();
  last_frame_ = 0;
  return true;
}

void SpoolReplay::DeclareGone(FrameSink& sink) const {
  std::string message;
  for (const auto& [writer, spooled] : spooled_) {
    const auto stored = stored_.find(writer);
    const uint64_t first =
        stored == stored_.end() ? spooled.first : std::max(spooled.first, stored->second);
    if (first >= spooled.next) continue;
    const LostEvents gone{.writer = writer,
                          .first_event = first,
                          .events = spooled.next - first,
                          .loss = proto::Loss::kStore};
    message.clear();
    AppendLostRange(gone, message);
    sink.Put({.type = FrameType::kLoss}, std::as_bytes(std::span(message)));
  }
}

void SpoolReplay::PutUnlessStored(const proto::FrameView& frame, FrameSink& sink) {
  const proto::FrameHeader& header = frame.header;
  if (header.type == FrameType::kHello) return;
  if (header.type == FrameType::kEvents) {
    const auto stored = stored_.find(header.writer);
    if (stored != stored_.end() && header.first_event < stored->second) return;
    stored_[header.writer] = header.first_event + header.events;
  }
  sink.Put({.type = header.type,
            .writer = header.writer,
            .first_event = header.first_event,
            .events = header.events,
            .lost = header.lost},
           frame.payload);
}

bool SpoolReplay::Run(FileSpool& spool, FrameSink& sink) {
  constexpr size_t kPiece = 256 << 10;
  while (!sink.IsBehind()) {
    std::span<const std::byte> piece = spool.Read(offset_, kPiece);
    const size_t before = piece.size();
    while (true) {
      const proto::FrameView frame = proto::DecodeFrame(piece);
      if (frame.status != FrameStatus::kComplete) break;
      piece = piece.subspan(frame.consumed);
      PutUnlessStored(frame, sink);
    }
    offset_ += before - piece.size();
    if (piece.size() == before) {
      // The end; or the file is damaged from here on, or was taken away meanwhile.
      DeclareGone(sink);
      return true;
    }
  }
  return false;
}

}  // namespace ranktap::agent
