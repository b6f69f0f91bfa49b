// A ring of entries that is emptied when it is full.
// Runs on: the thread it belongs to.  May not: allocate, lock.
#include "agent/stacks/stack_memo.h"

#include <algorithm>
#include <cstring>

namespace ranktap::agent::stacks {
namespace {

constexpr uint32_t kHeadWords = sizeof(StackMemo::Entry) / sizeof(uint64_t);
static_assert(sizeof(StackMemo::Entry) % sizeof(uint64_t) == 0);

const uint64_t* ValuesOf(const StackMemo::Entry& entry) {
  return reinterpret_cast<const uint64_t*>(&entry + 1);
}
const uint16_t* SlotsOf(const StackMemo::Entry& entry) {
  return reinterpret_cast<const uint16_t*>(ValuesOf(entry) + entry.frames);
}

bool StillHolds(StackMemo::Entry& entry) {
  const auto* stack = reinterpret_cast<const uint64_t*>(entry.sp);
  const uint64_t* values = ValuesOf(entry);
  const uint16_t* slots = SlotsOf(entry);
  const auto differs = [&](uint32_t i) { return stack[slots[i]] ^ values[i]; };
  if (differs(entry.differed) != 0) return false;
  // Four at a time: the loads are misses that can overlap.
  uint32_t i = 0;
  while (i + 4 <= entry.frames &&
         (differs(i) | differs(i + 1) | differs(i + 2) | differs(i + 3)) == 0) {
    i += 4;
  }
  while (i < entry.frames && differs(i) == 0) ++i;
  if (i == entry.frames) return true;
  entry.differed = static_cast<uint16_t>(i);
  return false;
}

}  // namespace

StackMemo::Entry* StackMemo::Find(uint64_t sp, uint64_t hint, uint32_t generation) {
  const uint16_t* set = SetFor(sp, hint);
  for (uint32_t way = 0; way < kWays && set[way] != 0; ++way) {
    auto* entry = reinterpret_cast<Entry*>(&words_[set[way] - 1]);
    if (entry->sp == sp && entry->hint == hint && entry->generation == generation &&
        StillHolds(*entry)) {
      return entry;
    }
  }
  return nullptr;
}

bool StackMemo::Keep(uint64_t sp, uint64_t hint, uint32_t generation, const RawStack& stack,
                     proto::ArenaRef ref) {
  // Frames below sp are those of the walk itself.
  uint32_t first = 0;
  while (first < stack.frames && stack.slots[first] < sp) ++first;
  const uint32_t frames = stack.frames - first;
  const uint32_t words = kHeadWords + frames + (frames + 3) / 4;
  if (frames == 0 || words > kWords) return false;
  for (uint32_t i = first; i < stack.frames; ++i) {
    if (stack.slots[i] < sp || (stack.slots[i] - sp) / 8 > UINT16_MAX) return false;
  }
  if (used_words_ + words > kWords) Clear();
  auto* entry = reinterpret_cast<Entry*>(&words_[used_words_]);
  *entry = {.sp = sp,
            .hint = hint,
            .generation = generation,
            .stack = ref,
            .uses = 0,
            .frames = static_cast<uint16_t>(frames),
            .differed = 0};
  auto* values = reinterpret_cast<uint64_t*>(entry + 1);
  auto* slots = reinterpret_cast<uint16_t*>(values + frames);
  for (uint32_t i = 0; i < frames; ++i) {
    values[i] = stack.ips[first + i];
    slots[i] = static_cast<uint16_t>((stack.slots[first + i] - sp) / 8);
  }
  uint16_t* set = SetFor(sp, hint);
  uint16_t* way = std::find(set, set + kWays, 0u);
  if (way == set + kWays) {
    random_ = random_ * 1664525 + 1013904223;
    way = set + (random_ >> 16) % kWays;
  }
  *way = static_cast<uint16_t>(used_words_ + 1);
  used_words_ += words;
  return true;
}

void StackMemo::Clear() {
  std::memset(index_, 0, sizeof(index_));
  used_words_ = 0;
}

}  // namespace ranktap::agent::stacks
