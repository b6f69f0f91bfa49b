// Text -> the id of an equal text. Used by one importer, on one thread.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/import/json_scan.h"
#include "collector/trace/dictionary.h"

namespace ranktap::collector {

// Ids of Dictionary::String. Looks texts up as they stand in the file, escapes and all, so that an
// escaped text is resolved once and not at every use.
class Interner {
 public:
  explicit Interner(Dictionary* dictionary) : dictionary_(dictionary), slots_(1024) {}

  // 0 for the empty text.
  uint32_t Intern(std::string_view raw) {
    if (raw.empty()) return 0;
    const uint64_t hash = XXH3_64bits(raw.data(), raw.size());
    if (const uint32_t known = Find(raw, hash)) return known;
    const uint32_t id = dictionary_->AppendString(
        raw.find('\\') == std::string_view::npos ? std::string(raw) : Unescaped(raw));
    Keep(raw, hash, id);
    return id;
  }
  // The same for a list: however its writer spaced it, "[[8, 16], []]" is what is kept.
  uint32_t InternList(std::string_view raw) {
    if (raw.empty()) return 0;
    const uint64_t hash = XXH3_64bits(raw.data(), raw.size());
    if (const uint32_t known = Find(raw, hash)) return known;
    const std::string spaced = SpacedAsTorch(raw);
    const uint32_t id = Intern(spaced);
    if (spaced != raw) Keep(raw, hash, id);
    return id;
  }

 private:
  // 0: it is not known.
  uint32_t Find(std::string_view raw, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask; slots_[at].id != 0; at = (at + 1) & mask) {
      if (slots_[at].hash == hash && raw_[slots_[at].raw] == raw) return slots_[at].id;
    }
    return 0;
  }
  void Keep(std::string_view raw, uint64_t hash, uint32_t id) {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].id != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {hash, id, static_cast<uint32_t>(raw_.size())};
    raw_.emplace_back(raw);
    if (raw_.size() * 2 > slots_.size()) Grow();
  }
  struct Slot {
    uint64_t hash = 0;
    uint32_t id = 0, raw = 0;
  };
  void Grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id == 0) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].id != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  Dictionary* dictionary_;
  std::vector<Slot> slots_;  // a power of two of them
  std::vector<std::string> raw_;
};

}  // namespace ranktap::collector
