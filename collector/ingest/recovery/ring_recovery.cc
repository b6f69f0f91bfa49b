#include "collector/ingest/recovery/ring_recovery.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "proto/encode.h"
#include "ranktap/v1/control.pb.h"

namespace ranktap::collector {
namespace {

// The structs of the segment without their atomics, as they lie in a copy.
template <typename Atomic>
auto Relaxed(const Atomic& value) {
  return value.load(std::memory_order_relaxed);
}

// A chunk yields at most this: 256 KiB of events of 24 B and more never encode to more than a frame
// can hold (10 B for 8 at worst).
static_assert(proto::kChunkBytes * 10 / 8 < proto::kMaxPayloadBytes);
static_assert(proto::kChunkBytes / sizeof(proto::RangePopEvent) < proto::kMaxEventsPerFrame);

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

RingRecovery::RingRecovery(const Segment& segment, const TraceState& state, TakeFrame take)
    : segment_(segment), state_(state), take_(std::move(take)), accounts_(state), names_(state) {}

void RingRecovery::Send(proto::FrameType type, const std::string& payload) {
  if (!payload.empty()) take_({.type = type}, Bytes(payload));
}

bool RingRecovery::Run(bool process_is_dead) {
  if (!ReadHeader()) {
    Send(proto::FrameType::kAccounts, accounts_.Accounts(process_is_dead));
    return false;
  }
  // Before the first event, after which a trace has its name.
  Send(proto::FrameType::kAmend, rank_);
  SendNewEntries();
  std::vector<ChunkInfo> chunks = ListChunks();
  std::sort(chunks.begin(), chunks.end(), [](const ChunkInfo& a, const ChunkInfo& b) {
    return std::tie(a.writer, a.first_event) < std::tie(b.writer, b.first_event);
  });
  for (auto begin = chunks.begin(); begin != chunks.end();) {
    const auto end = std::find_if(
        begin, chunks.end(), [&](const ChunkInfo& chunk) { return chunk.writer != begin->writer; });
    DrainWriter(begin->writer, {begin, end});
    begin = end;
  }
  Send(proto::FrameType::kClock, last_clock_);
  Send(proto::FrameType::kAccounts, accounts_.Accounts(process_is_dead));
  if (process_is_dead && !said_last_words_) {
    Send(proto::FrameType::kOpenCalls, accounts_.OpenCalls([this](proto::ArenaRef function) {
      return names_.IdOf(proto::EntryKind::kApiFunction, function);
    }));
  }
  return true;
}

bool RingRecovery::ReadHeader() {
  alignas(proto::SegmentHeader) std::byte copy[sizeof(proto::SegmentHeader)];
  if (!segment_.ReadAt(0, copy)) {
    problem_ = "the rings are shorter than their header";
    return false;
  }
  const auto& header = *reinterpret_cast<const proto::SegmentHeader*>(copy);
  if (header.magic != proto::kSegmentMagic || header.version != proto::kSegmentVersion ||
      header.block_bytes != proto::kBlockBytes || header.writer_slots > proto::kMaxWriterSlots) {
    problem_ = "the rings are of another version or damaged";
    return false;
  }
  const uint64_t bytes = std::min(header.segment_bytes, segment_.bytes());
  groups_ = header.chunk_groups;
  layout_ = proto::LayOutSegment(bytes, header.writer_slots, groups_);
  if (layout_.arena_bytes == 0 || layout_.slots_offset != header.slots_offset ||
      layout_.chunks_offset != header.chunks_offset ||
      layout_.arena_offset != header.arena_offset) {
    problem_ = "the rings' layout is damaged";
    return false;
  }
  ReadLastWords(header.last_words);
  const uint64_t arena_bytes =
      std::min({Relaxed(header.arena_used), header.arena_bytes, layout_.arena_bytes});
  const auto strings = static_cast<size_t>(proto::EntryKind::kString);
  if (!accounts_.Read(segment_, layout_.slots_offset, header.writer_slots) ||
      !names_.Read(segment_, layout_.arena_offset, arena_bytes, Relaxed(header.next_id[strings]))) {
    problem_ = "the rings are cut off";
    return false;
  }
  return true;
}

void RingRecovery::ReadRank(const proto::LastWords& words) {
  v1::Hello told, rank;
  const size_t bytes = std::min<size_t>(Relaxed(words.rank_bytes), sizeof(words.rank));
  if (bytes == 0 || !told.ParseFromArray(words.rank, static_cast<int>(bytes))) return;
  if (!told.has_rank() ||
      told.rank().SerializeAsString() == state_.hello().rank().SerializeAsString())
    return;
  *rank.mutable_rank() = told.rank();
  rank_ = rank.SerializeAsString();
}

void RingRecovery::ReadLastWords(const proto::LastWords& words) {
  said_last_words_ = Relaxed(words.ended) != 0;
  ReadRank(words);
  const uint32_t sequence = Relaxed(words.clock_sequence);
  if (sequence == 0 || sequence % 2 != 0) return;
  v1::ClockReadings readings;
  v1::ClockReading& reading = *readings.add_readings();
  reading.set_tsc(Relaxed(words.tsc));
  reading.set_monotonic_raw_ns(Relaxed(words.monotonic_raw_ns));
  reading.set_realtime_ns(Relaxed(words.realtime_ns));
  reading.set_spread_ns(static_cast<uint32_t>(Relaxed(words.spread_ns)));
  last_clock_ = readings.SerializeAsString();
}

void RingRecovery::SendNewEntries() {
  std::string dictionary;
  names_.ForEachNewEntry([&](const std::string& entry) {
    dictionary += entry;
    if (dictionary.size() <= proto::kMaxPayloadBytes / 4) return;
    Send(proto::FrameType::kDictionary, std::exchange(dictionary, {}));
  });
  accounts_.AppendNewWriters(&dictionary);
  Send(proto::FrameType::kDictionary, dictionary);
}

std::optional<RingRecovery::ChunkInfo> RingRecovery::ChunkAt(uint32_t block) const {
  alignas(proto::Chunk) std::byte copy[sizeof(proto::Chunk)];
  const uint64_t offset = layout_.chunks_offset + uint64_t{block} * proto::kBlockBytes;
  if (!segment_.ReadAt(offset, copy)) return std::nullopt;
  const auto& chunk = *reinterpret_cast<const proto::Chunk*>(copy);
  const uint32_t writer = Relaxed(chunk.writer), blocks = chunk.blocks;
  if (chunk.magic != proto::kChunkMagic || writer == 0 || writer > kMaxEntryId) return std::nullopt;
  if ((blocks != 1 && blocks != 4 && blocks != 16 && blocks != 64) || block % blocks != 0) {
    return std::nullopt;
  }
  const uint32_t events =
      std::min(proto::CommittedEvents(Relaxed(chunk.committed)), proto::kMaxEventsPerFrame);
  const uint64_t most = accounts_.MostProduced(writer), first = std::min(chunk.first_event, most);
  return ChunkInfo{block, blocks, writer, first, std::min(first + events, most)};
}

std::vector<RingRecovery::ChunkInfo> RingRecovery::ListChunks() {
  std::vector<ChunkInfo> chunks;
  const uint32_t all = groups_ * proto::kGroupBlocks;
  for (uint32_t block = 0; block < all;) {
    const std::optional<ChunkInfo> chunk = ChunkAt(block);
    block += chunk ? chunk->blocks : 1;
    if (chunk && chunk->first_event < chunk->end_event) chunks.push_back(*chunk);
  }
  return chunks;
}

void RingRecovery::DrainWriter(uint32_t writer, std::span<const ChunkInfo> chunks) {
  // A writer that nobody has heard of is one more than the limits allow, or does not exist.
  if (!state_.writers().contains(writer) && state_.writers().size() >= kMaxWriters) return;
  uint64_t next = state_.NextEvent(writer);
  for (const ChunkInfo& chunk : chunks) {
    if (chunk.end_event <= next) continue;
    if (chunk.first_event > next) {
      DeclareLost(writer, next, chunk.first_event - next);
      next = chunk.first_event;
    }
    DrainChunk(chunk, &next);
  }
}

void RingRecovery::DrainChunk(const ChunkInfo& info, uint64_t* next) {
  chunk_.resize(uint64_t{info.blocks} * proto::kBlockBytes);
  const uint64_t offset = layout_.chunks_offset + uint64_t{info.block} * proto::kBlockBytes;
  if (!segment_.ReadAt(offset, chunk_)) {
    DeclareLost(info.writer, *next, info.end_event - *next);
    *next = info.end_event;
    return;
  }
  alignas(proto::Chunk) std::byte header[sizeof(proto::Chunk)];
  std::memcpy(header, chunk_.data(), sizeof(header));
  const auto& chunk = *reinterpret_cast<const proto::Chunk*>(header);
  const size_t bytes = std::min<size_t>(proto::CommittedBytes(Relaxed(chunk.committed)),
                                        chunk_.size() - sizeof(proto::Chunk));
  proto::EventEncoder encoder;
  size_t at = sizeof(proto::Chunk);
  uint64_t position = info.first_event;
  for (; position < info.end_event; ++position) {
    const auto* event = reinterpret_cast<const proto::EventHeader*>(chunk_.data() + at);
    const size_t available = sizeof(proto::Chunk) + bytes - at;
    if (!proto::EventEncoder::IsWellFormed(event, available)) break;
    if (position >= *next) (void)encoder.Add(event, available);
    at += event->bytes;
  }
  if (encoder.count() > 0) {
    const auto events = static_cast<uint32_t>(encoder.count());
    std::string payload;
    encoder.Encode(names_, payload);
    for (const std::string& names : names_.TakeFresh()) Send(proto::FrameType::kDictionary, names);
    SendEvents(info.writer, *next, payload, events);
    *next += events;
  }
  if (*next < info.end_event) {
    DeclareLost(info.writer, *next, info.end_event - *next);
    *next = info.end_event;
  }
}

void RingRecovery::SendEvents(uint32_t writer, uint64_t first, const std::string& payload,
                              uint32_t events) {
  take_({.type = proto::FrameType::kEvents,
         .writer = writer,
         .first_event = first,
         .events = events,
         .lost = proto::FirstLosses(accounts_.LossesOf(writer))},
        Bytes(payload));
  events_ += events;
}

void RingRecovery::DeclareLost(uint32_t writer, uint64_t first, uint64_t events) {
  v1::LostRange lost;
  lost.set_writer(writer);
  lost.set_first_event(first);
  lost.set_events(events);
  lost.set_loss(static_cast<uint32_t>(proto::Loss::kDeath));
  take_({.type = proto::FrameType::kLoss, .writer = writer}, Bytes(lost.SerializeAsString()));
  lost_ += events;
}

}  // namespace ranktap::collector
