#include "collector/ingest/recovery/ring_recovery.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <tuple>
#include <utility>

#include "proto/encode.h"
#include "proto/encode_entry.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {
namespace {

using proto::ArenaEntry;
using proto::EntryKind;
using proto::kArenaAlign;

// The structs of the segment without their atomics, as they lie in a copy.
template <typename Atomic>
auto Plain(const Atomic& value) {
  return value.load(std::memory_order_relaxed);
}

// A chunk yields at most this: 256 KiB of events of 24 B and more never encode to more than a frame
// can hold (10 B for 8 at worst).
static_assert(proto::kChunkBytes * 10 / 8 < proto::kMaxPayloadBytes);
static_assert(proto::kChunkBytes / sizeof(proto::RangePopEvent) < proto::kMaxEventsPerFrame);

std::optional<ArenaEntry> EntryAt(std::span<const std::byte> arena, uint64_t offset) {
  if (offset + sizeof(ArenaEntry) > arena.size()) return std::nullopt;
  ArenaEntry entry;
  std::memcpy(&entry, arena.data() + offset, sizeof(entry));
  if (entry.magic != proto::kArenaMagic || entry.bytes > arena.size() - offset - sizeof(entry)) {
    return std::nullopt;
  }
  if (entry.id == 0 || entry.id > kMaxEntryId) return std::nullopt;
  return entry;
}

// What is looked at of the arena: more names than these no file takes.
constexpr uint64_t kMostArenaBytes = kMaxDictionaryBytes + (16u << 20);
// Texts that are found again by content; the others get a second number.
constexpr size_t kMostTexts = 1u << 18;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

// Arena references -> dictionary ids, for the encoder.
class RingRecovery::Ids {
 public:
  explicit Ids(RingRecovery* recovery) : recovery_(recovery) {}

  uint32_t IdOf(EntryKind kind, proto::ArenaRef ref) {
    if (ref == 0) return 0;
    const auto entry = EntryAt(recovery_->arena_, uint64_t{ref} * kArenaAlign);
    if (!entry || entry->kind != static_cast<uint16_t>(kind)) return 0;
    return recovery_->state_.entries().Contains(entry->kind, entry->id) ? entry->id : 0;
  }

  uint32_t IdOfText(std::span<const std::byte> text) {
    const std::string_view key(reinterpret_cast<const char*>(text.data()), text.size());
    const auto found = Texts().find(key);
    if (found != Texts().end()) return found->second;
    const uint32_t id = recovery_->next_string_id_++;
    if (id > kMaxEntryId) return 0;
    recovery_->texts_.emplace(key, id);
    protozero::pbf_writer dictionary(fresh_);
    (void)proto::EncodeEntry(EntryKind::kString, id, text, dictionary);
    return id;
  }

  // Entries made up since the last call.
  std::string TakeFresh() { return std::exchange(fresh_, {}); }

 private:
  // What is stored already, by content; built when the first inline text is met.
  std::map<std::string, uint32_t, std::less<>>& Texts() {
    if (!std::exchange(recovery_->texts_known_, true)) {
      // Not by a Dictionary, which has room for every id up to the largest: a damaged ring may say
      // four million.
      const std::string bytes = recovery_->state_.dictionary();
      (void)ForEachEntry(Bytes(bytes), [this](uint32_t field, uint64_t id, std::string_view entry) {
        if (field != v1::Dictionary::kStringsFieldNumber) return;
        if (recovery_->texts_.size() >= kMostTexts) return;
        v1::Dictionary known;
        if (known.ParseFromArray(entry.data(), static_cast<int>(entry.size()))) {
          recovery_->texts_.emplace(known.strings(0).text(), static_cast<uint32_t>(id));
        }
      });
    }
    return recovery_->texts_;
  }

  RingRecovery* recovery_;
  std::string fresh_;
};

RingRecovery::RingRecovery(const Segment& segment, const TraceState& state, TakeFrame take)
    : segment_(segment), state_(state), take_(std::move(take)) {}

bool RingRecovery::Run(bool process_is_dead) {
  if (!ReadHeader() || !ReadSlots() || !ReadArena()) {
    SendAccounts(process_is_dead);
    return false;
  }
  // Before the first event, after which a trace has its name.
  if (!rank_.empty()) take_({.type = proto::FrameType::kAmend}, Bytes(rank_));
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
  if (!last_clock_.empty()) take_({.type = proto::FrameType::kClock}, Bytes(last_clock_));
  SendAccounts(process_is_dead);
  if (process_is_dead && !said_last_words_) SendOpenCalls();
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
  slot_count_ = header.writer_slots;
  groups_ = header.chunk_groups;
  layout_ = proto::LayOutSegment(bytes, slot_count_, groups_);
  if (layout_.arena_bytes == 0 || layout_.slots_offset != header.slots_offset ||
      layout_.chunks_offset != header.chunks_offset ||
      layout_.arena_offset != header.arena_offset) {
    problem_ = "the rings' layout is damaged";
    return false;
  }
  arena_used_ = std::min(
      {Plain(header.arena_used), header.arena_bytes, layout_.arena_bytes, kMostArenaBytes});
  const auto strings = static_cast<size_t>(EntryKind::kString);
  next_string_id_ = std::min(Plain(header.next_id[strings]), kMaxEntryId);
  ReadLastWords(header.last_words);
  return true;
}

void RingRecovery::ReadRank(const proto::LastWords& words) {
  v1::Hello told, rank;
  const size_t bytes = std::min<size_t>(Plain(words.rank_bytes), sizeof(words.rank));
  if (bytes == 0 || !told.ParseFromArray(words.rank, static_cast<int>(bytes))) return;
  if (!told.has_rank() ||
      told.rank().SerializeAsString() == state_.hello().rank().SerializeAsString())
    return;
  *rank.mutable_rank() = told.rank();
  rank_ = rank.SerializeAsString();
}

void RingRecovery::ReadLastWords(const proto::LastWords& words) {
  said_last_words_ = Plain(words.ended) != 0;
  ReadRank(words);
  const uint32_t sequence = Plain(words.clock_sequence);
  if (sequence == 0 || sequence % 2 != 0) return;
  v1::ClockReadings readings;
  v1::ClockReading& reading = *readings.add_readings();
  reading.set_tsc(Plain(words.tsc));
  reading.set_monotonic_raw_ns(Plain(words.monotonic_raw_ns));
  reading.set_realtime_ns(Plain(words.realtime_ns));
  reading.set_spread_ns(static_cast<uint32_t>(Plain(words.spread_ns)));
  last_clock_ = readings.SerializeAsString();
}

bool RingRecovery::ReadSlots() {
  std::vector<proto::WriterSlot> slots(slot_count_);
  const auto bytes = std::as_writable_bytes(std::span(slots));
  if (!segment_.ReadAt(layout_.slots_offset, bytes)) {
    problem_ = "the rings are cut off";
    return false;
  }
  for (const proto::WriterSlot& slot : slots) {
    const uint32_t id = Plain(slot.id);
    if (id == 0 || id > kMaxEntryId || slots_.contains(id)) continue;
    Slot& copy = slots_[id];
    copy.kind = static_cast<proto::WriterKind>(slot.kind);
    copy.thread = slot.thread;
    copy.ended = Plain(slot.state) == static_cast<uint32_t>(proto::WriterState::kEnded);
    copy.produced = Plain(slot.produced);
    for (size_t i = 0; i < proto::kLossCount; ++i) copy.lost[i] = Plain(slot.lost[i]);
    copy.open_since_ticks = Plain(slot.open_since_ticks);
    copy.open_api = Plain(slot.open_api);
    copy.open_correlation = Plain(slot.open_correlation);
  }
  return true;
}

bool RingRecovery::ReadArena() {
  arena_.resize(arena_used_);
  if (!segment_.ReadAt(layout_.arena_offset, arena_)) {
    problem_ = "the rings are cut off";
    return false;
  }
  return true;
}

// Walks the arena in steps of its alignment, since an entry that was being written when the process
// died has no header yet to step over.
void RingRecovery::SendNewEntries() {
  std::string dictionary;
  const auto flush = [&](size_t limit) {
    if (dictionary.size() <= limit) return;
    take_({.type = proto::FrameType::kDictionary}, Bytes(dictionary));
    dictionary.clear();
  };
  uint64_t largest_string = state_.entries().LargestId(static_cast<uint32_t>(EntryKind::kString));
  for (uint64_t offset = 0; offset + sizeof(ArenaEntry) <= arena_.size();) {
    const auto entry = EntryAt(arena_, offset);
    if (!entry) {
      offset += kArenaAlign;
      continue;
    }
    const auto kind = static_cast<EntryKind>(entry->kind);
    const auto content = std::span(arena_).subspan(offset + sizeof(ArenaEntry), entry->bytes);
    if (kind == EntryKind::kString) largest_string = std::max<uint64_t>(largest_string, entry->id);
    if (!state_.entries().Contains(entry->kind, entry->id) &&
        content.size() < proto::kMaxPayloadBytes / 2) {
      std::string encoded;
      protozero::pbf_writer writer(encoded);
      // Schemas and the like lie there as messages: what does not read as one is left out.
      if (proto::EncodeEntry(kind, entry->id, content, writer) &&
          ForEachEntry(Bytes(encoded), [](uint32_t, uint64_t, std::string_view) {})) {
        dictionary += encoded;
      }
    }
    flush(proto::kMaxPayloadBytes / 4);
    const uint64_t bytes = sizeof(ArenaEntry) + entry->bytes;
    offset += (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
  }
  for (const auto& [id, slot] : slots_) {
    if (state_.entries().Contains(v1::Dictionary::kWritersFieldNumber, id)) continue;
    v1::Dictionary writers;
    v1::Writer& writer = *writers.add_writers();
    writer.set_id(id);
    writer.set_kind(static_cast<uint32_t>(slot.kind));
    writer.set_thread(slot.thread);
    writers.AppendToString(&dictionary);
  }
  flush(0);
  next_string_id_ = static_cast<uint32_t>(std::max<uint64_t>(largest_string + 1, next_string_id_));
}

// How many events the writer can have made at most: what a damaged chunk says is not believed.
uint64_t RingRecovery::MostProduced(uint32_t writer) const {
  const auto slot = slots_.find(writer);
  return slot == slots_.end() ? state_.NextEvent(writer) + proto::kMaxEventsPerFrame
                              : slot->second.produced;
}

std::optional<RingRecovery::ChunkInfo> RingRecovery::ChunkAt(uint32_t block) const {
  alignas(proto::Chunk) std::byte copy[sizeof(proto::Chunk)];
  const uint64_t offset = layout_.chunks_offset + uint64_t{block} * proto::kBlockBytes;
  if (!segment_.ReadAt(offset, copy)) return std::nullopt;
  const auto& chunk = *reinterpret_cast<const proto::Chunk*>(copy);
  const uint32_t writer = Plain(chunk.writer), blocks = chunk.blocks;
  if (chunk.magic != proto::kChunkMagic || writer == 0 || writer > kMaxEntryId) return std::nullopt;
  if ((blocks != 1 && blocks != 4 && blocks != 16 && blocks != 64) || block % blocks != 0) {
    return std::nullopt;
  }
  const uint32_t events =
      std::min(proto::CommittedEvents(Plain(chunk.committed)), proto::kMaxEventsPerFrame);
  const uint64_t most = MostProduced(writer), first = std::min(chunk.first_event, most);
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
  const size_t bytes = std::min<size_t>(proto::CommittedBytes(Plain(chunk.committed)),
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
    Ids ids(this);
    std::string payload;
    encoder.Encode(ids, payload);
    const std::string fresh = ids.TakeFresh();
    if (!fresh.empty()) take_({.type = proto::FrameType::kDictionary}, Bytes(fresh));
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
         .lost = proto::FirstLosses(LossesOf(writer))},
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

void RingRecovery::SendOpenCalls() {
  v1::OpenCalls calls;
  Ids ids(this);
  for (const auto& [id, slot] : slots_) {
    if (slot.open_api == 0 || slot.ended) continue;
    v1::OpenCall& call = *calls.add_calls();
    call.set_writer(id);
    call.set_since_ticks(slot.open_since_ticks);
    call.set_api(ids.IdOf(EntryKind::kApiFunction, slot.open_api));
    call.set_correlation(slot.open_correlation);
  }
  if (calls.calls_size() == 0) return;
  take_({.type = proto::FrameType::kOpenCalls}, Bytes(calls.SerializeAsString()));
}

}  // namespace ranktap::collector
