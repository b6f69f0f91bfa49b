// Lock-free interning: an open-addressed table of (hash, ref) over an append-only heap.
// Runs on: any thread.  May not: allocate, lock, log; make a system call but for more of the arena.
#include "agent/core/arena.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ranktap::agent {

using proto::ArenaEntry;
using proto::ArenaRef;
using proto::EntryKind;

void Arena::Attach(Segment& segment, std::atomic<uint64_t>* table) {
  segment_ = &segment;
  table_ = table;
}

ArenaRef Arena::Intern(EntryKind kind, std::span<const std::byte> content) {
  if (segment_ == nullptr || content.size() > kMaxContentBytes) return 0;
  const uint64_t wide =
      XXH3_64bits_withSeed(content.data(), content.size(), static_cast<uint64_t>(kind));
  const auto hash = static_cast<uint32_t>(wide);
  ArenaRef made = 0;
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    std::atomic<uint64_t>& cell = table_[((wide >> 32) + probe) % kTableSlots];
    uint64_t found = cell.load(std::memory_order_acquire);
    if (found == 0) {
      // Two threads that meet here with the same content: the loser's copy is never referred to,
      // a few wasted bytes and an id that no event uses.
      if (made == 0) made = Append(kind, content, hash);
      if (made == 0) return 0;
      if (cell.compare_exchange_strong(found, uint64_t{hash} << 32 | made,
                                       std::memory_order_acq_rel)) {
        return made;
      }
    }
    if (static_cast<uint32_t>(found >> 32) != hash) continue;
    const auto ref = static_cast<ArenaRef>(found);
    const ArenaEntry* entry = Find(ref);
    // Not there: the program wrote over it, or this is a fork child.
    if (entry == nullptr) return 0;
    if (entry->kind != static_cast<uint16_t>(kind) || entry->bytes != content.size()) continue;
    // An empty name has no address to compare.
    if (content.empty() || std::memcmp(entry + 1, content.data(), content.size()) == 0) return ref;
  }
  return 0;
}

// The last offset at which so many bytes fit.
uint64_t Arena::RoomFor(uint64_t bytes) const {
  const uint64_t end = segment_->arena_bytes();
  return end - std::min(bytes, end);
}

bool Arena::GrowKeepingErrno() {
  const int error = errno;
  const bool grew = segment_->GrowArena();
  errno = error;
  return grew;
}

ArenaRef Arena::Append(EntryKind kind, std::span<const std::byte> content, uint32_t hash) {
  // One byte more than the content: the memory is zero, so every entry is followed by a NUL.
  const uint64_t bytes = (sizeof(ArenaEntry) + content.size() + 1 + proto::kArenaAlign - 1) /
                         proto::kArenaAlign * proto::kArenaAlign;
  auto& used = segment_->header().arena_used;
  // Tested first, so that a full arena's counter cannot creep up to where it overflows. The program
  // may have written over it, so its value need not be an offset.
  if (used.load(std::memory_order_relaxed) > RoomFor(bytes) && !GrowKeepingErrno()) return 0;
  const uint64_t room = RoomFor(bytes);
  if (used.load(std::memory_order_relaxed) > room) return 0;
  const uint64_t offset = used.fetch_add(bytes, std::memory_order_relaxed);
  if (offset > room || offset % proto::kArenaAlign != 0) return 0;
  auto* entry = reinterpret_cast<ArenaEntry*>(segment_->arena() + offset);
  auto& next_id = segment_->header().next_id[static_cast<size_t>(kind)];
  *entry = {.magic = proto::kArenaMagic,
            .kind = static_cast<uint16_t>(kind),
            .id = next_id.fetch_add(1, std::memory_order_relaxed) + 1,
            .bytes = static_cast<uint32_t>(content.size()),
            .hash = hash};
  std::memcpy(entry + 1, content.data(), content.size());
  return static_cast<ArenaRef>(offset / proto::kArenaAlign);
}

const ArenaEntry* Arena::Find(ArenaRef ref) const {
  const uint64_t offset = uint64_t{ref} * proto::kArenaAlign, end = segment_->arena_bytes();
  if (ref == 0 || offset + sizeof(ArenaEntry) > end) return nullptr;
  const auto* entry = reinterpret_cast<const ArenaEntry*>(segment_->arena() + offset);
  const bool is_whole = entry->bytes < end - offset - sizeof(ArenaEntry);
  return entry->magic == proto::kArenaMagic && is_whole ? entry : nullptr;
}

}  // namespace ranktap::agent
