#include "collector/ingest/recovery/ring_names.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "proto/encode_entry.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {
namespace {

using proto::ArenaEntry;
using proto::EntryKind;
using proto::kArenaAlign;

// The part of the arena that is looked at: no file takes more names than these.
constexpr uint64_t kMostArenaBytes = kMaxDictionaryBytes + (16u << 20);
// Texts that are found again by content; the others get a second number.
constexpr size_t kMostTexts = 1u << 18;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

bool IsToldAgain(EntryKind kind) {
  return std::ranges::find(proto::kToldAgain, kind) != std::end(proto::kToldAgain);
}

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

}  // namespace

bool RingNames::Read(const Segment& segment, uint64_t offset, uint64_t bytes,
                     uint32_t next_string_id) {
  next_string_id_ = std::min(next_string_id, kMaxEntryId);
  arena_.resize(std::min(bytes, kMostArenaBytes));
  return segment.ReadAt(offset, arena_);
}

// Walks the arena in steps of its alignment, since an entry that was being written when the process
// died has no header yet to step over.
void RingNames::ForEachNewEntry(const std::function<void(const std::string&)>& take) {
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
    if (!IsToldAgain(kind) && !state_.entries().Contains(entry->kind, entry->id) &&
        content.size() < proto::kMaxPayloadBytes / 2) {
      std::string encoded;
      protozero::pbf_writer writer(encoded);
      // Schemas and the like lie there as messages: what does not read as one is left out.
      if (proto::EncodeEntry(kind, entry->id, content, writer) &&
          ForEachEntry(BytesOf(encoded), [](uint32_t, uint64_t, std::string_view) {})) {
        take(encoded);
      }
    }
    const uint64_t bytes = sizeof(ArenaEntry) + entry->bytes;
    offset += (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
  }
  next_string_id_ = static_cast<uint32_t>(std::max<uint64_t>(largest_string + 1, next_string_id_));
}

uint32_t RingNames::IdOf(EntryKind kind, proto::ArenaRef ref) {
  if (ref == 0) return 0;
  const uint64_t offset = uint64_t{ref} * kArenaAlign;
  const auto entry = EntryAt(arena_, offset);
  if (!entry || entry->kind != static_cast<uint16_t>(kind)) return 0;
  if (state_.entries().Contains(entry->kind, entry->id) ||
      fresh_ids_.Contains(entry->kind, entry->id)) {
    return entry->id;
  }
  const auto content = std::span(arena_).subspan(offset + sizeof(ArenaEntry), entry->bytes);
  const bool is_new = IsToldAgain(kind) && content.size() < proto::kMaxPayloadBytes / 2 &&
                      Define(kind, entry->id, content);
  return is_new ? entry->id : 0;
}

bool RingNames::Define(EntryKind kind, uint32_t id, std::span<const std::byte> content) {
  constexpr size_t kHeadBytes = 16;
  const size_t bytes = content.size() + kHeadBytes;
  if (!room_)
    room_ = kMaxDictionaryBytes - std::min<uint64_t>(kMaxDictionaryBytes, state_.CheckpointBytes());
  if (bytes > *room_) return false;
  *room_ -= bytes;
  if (fresh_.empty() || fresh_.back().size() > proto::kMaxPayloadBytes / 4) fresh_.emplace_back();
  protozero::pbf_writer dictionary(fresh_.back());
  if (!proto::EncodeEntry(kind, id, content, dictionary)) return false;
  (void)fresh_ids_.Insert(static_cast<uint32_t>(kind), id);
  if (kind == EntryKind::kString && texts_.size() < kMostTexts) {
    texts_.emplace(std::string(reinterpret_cast<const char*>(content.data()), content.size()), id);
  }
  return true;
}

uint32_t RingNames::IdOfText(std::span<const std::byte> text) {
  const std::string_view key(reinterpret_cast<const char*>(text.data()), text.size());
  const Texts& texts = KnownTexts();
  if (const auto found = texts.find(key); found != texts.end()) return found->second;
  const uint32_t id = next_string_id_++;
  if (id > kMaxEntryId) return 0;
  return Define(EntryKind::kString, id, text) ? id : 0;
}

// Built when the first text of an event is met.
RingNames::Texts& RingNames::KnownTexts() {
  if (std::exchange(texts_known_, true)) return texts_;
  // Not by a Dictionary, which has room for every id up to the largest: a damaged ring may say four
  // million.
  const std::string bytes = state_.dictionary();
  (void)ForEachEntry(BytesOf(bytes), [this](uint32_t field, uint64_t id, std::string_view entry) {
    if (field != v1::Dictionary::kStringsFieldNumber || texts_.size() >= kMostTexts) return;
    v1::Dictionary known;
    if (known.ParseFromArray(entry.data(), static_cast<int>(entry.size()))) {
      texts_.emplace(known.strings(0).text(), static_cast<uint32_t>(id));
    }
  });
  return texts_;
}

}  // namespace ranktap::collector
