// Ids and definitions.
// Runs on: the sender thread.  May not: run in a hook.
#include "agent/transport/dictionary.h"

#include "proto/encode_entry.h"
#include "proto/frame.h"

namespace ranktap::agent {

using proto::EntryKind;

bool Dictionary::TellOnce(EntryKind kind, uint32_t id) {
  // Larger ones the program wrote over ours.
  constexpr uint32_t kLargestId = (1u << 22) - 1;
  if (id > kLargestId) return false;
  std::vector<bool>& told = told_[static_cast<size_t>(kind)];
  if (id >= told.size()) told.resize(id + 256);
  if (told[id]) return false;
  told[id] = true;
  return true;
}

uint32_t Dictionary::Tell(EntryKind kind, proto::ArenaRef ref) {
  if (ref == 0) return 0;
  const proto::ArenaEntry* entry = arena_.Find(ref);
  if (entry == nullptr || entry->kind != static_cast<uint16_t>(kind)) return 0;
  if (TellOnce(kind, entry->id) && !Define(kind, entry->id, Arena::ContentOf(*entry))) return 0;
  recent_[static_cast<size_t>(kind)][ref % kRecent] = {.ref = ref, .id = entry->id};
  return entry->id;
}

bool Dictionary::Define(EntryKind kind, uint32_t id, std::span<const std::byte> content) {
  constexpr size_t kMessageBytes = proto::kMaxPayloadBytes / 2;
  static_assert(kMessageBytes + 2 * Arena::kMaxContentBytes < proto::kMaxPayloadBytes);
  if (definitions_.empty() || definitions_.back().size() > kMessageBytes) {
    definitions_.emplace_back();
  }
  protozero::pbf_writer writer(definitions_.back());
  return proto::EncodeEntry(kind, id, content, writer);
}

uint32_t Dictionary::IdOfText(std::span<const std::byte> text) {
  // Names that did not fit into the arena. Remembered for as long as they are few.
  constexpr size_t kMaxRemembered = 64 << 10;
  if (inline_texts_.size() >= kMaxRemembered) inline_texts_.clear();
  std::string key(reinterpret_cast<const char*>(text.data()), text.size());
  const auto [at, added] = inline_texts_.try_emplace(std::move(key), 0);
  if (added) {
    auto& next = segment_.header().next_id[static_cast<size_t>(EntryKind::kString)];
    at->second = next.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  if (TellOnce(EntryKind::kString, at->second)) {
    (void)Define(EntryKind::kString, at->second, text);
  }
  return at->second;
}

void Dictionary::Forget() {
  for (auto& told : told_) told.clear();
  for (auto& recent : recent_) recent.fill({});
  definitions_.clear();
}

void Dictionary::TellAgain() {
  for (const EntryKind kind : proto::kToldAgain) {
    told_[static_cast<size_t>(kind)].clear();
    recent_[static_cast<size_t>(kind)].fill({});
  }
}

}  // namespace ranktap::agent
