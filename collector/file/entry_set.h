// The entries of a dictionary, told apart without being built. Thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {

inline constexpr uint32_t kMaxEntryId = 1u << 22;
// Schemas, and enums, that are told apart: their ids are the program's own numbers.
inline constexpr size_t kMaxArbitraryIds = 1u << 16;

// The dictionary entries that are known, by kind and id. However its ids are chosen, the whole set
// takes less than 40 bytes an entry and 32 MiB.
class EntrySet {
 public:
  // True when it was not there before, and always for what is not told apart: a kind that this
  // build does not know, a schema or enum beyond kMaxArbitraryIds.
  bool Insert(uint32_t field, uint64_t id);
  bool Contains(uint32_t field, uint64_t id) const;
  // The largest id of the kind so far; 0: none.
  uint64_t LargestId(uint32_t field) const;
  // About what it takes of memory.
  size_t bytes() const;

 private:
  struct Kind {
    std::vector<bool> dense;              // ids that count up from 1
    std::unordered_set<uint64_t> others;  // ids far beyond those, and arbitrary ones
    uint64_t largest = 0;
    size_t count = 0;
  };
  std::array<Kind, v1::Dictionary::kWritersFieldNumber + 1> kinds_;
};

// Calls take(field, key, bytes) for each entry of a serialised v1.Dictionary; `key` is its id (of
// schemas and enums: id and domain in one), `bytes` the entry
// with its tag, so that concatenating them gives a dictionary again. False, and some may have been
// taken, when malformed or when an id is out of bounds.
using TakeEntry = std::function<void(uint32_t field, uint64_t id, std::string_view bytes)>;
[[nodiscard]] bool ForEachEntry(std::span<const std::byte> dictionary, const TakeEntry& take);

// The text of such an entry that is a v1.Text; empty where it is none.
std::string_view TextOfEntry(std::string_view bytes);

}  // namespace ranktap::collector
