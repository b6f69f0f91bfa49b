// One thread's stacks by where they were taken: an entry is the stack pointer, the addresses of the
// return-address slots and the values found there. While all of them still hold these values, the
// stack is the one it was, and reading them is all it costs.
// Runs on: the thread it belongs to.  May not: allocate, lock.
#pragma once

#include <cstdint>

#include "agent/stacks/stack_walker.h"
#include "proto/events.h"

namespace ranktap::agent::stacks {

class StackMemo {
 public:
  struct Entry {
    uint64_t sp;
    uint64_t hint;
    uint32_t generation;  // of the frame rules
    proto::ArenaRef stack;
    uint32_t uses;
    uint16_t frames;
    uint16_t differed;  // which frame did not hold when asked last: looked at first
    // then `frames` values, then `frames` slots in words above sp
  };

  // nullptr: not seen, or not any more. `hint`: what else tells one call site from another.
  Entry* Find(uint64_t sp, uint64_t hint, uint32_t generation);
  // False when the stack has a frame that lies in no slot, or too far from sp.
  bool Keep(uint64_t sp, uint64_t hint, uint32_t generation, const RawStack& stack,
            proto::ArenaRef ref);
  void Clear();

 private:
  static constexpr uint32_t kSets = 256;
  // Calls of one function to one API share sp and hint. With 4 ways, a fifth such call site, or
  // another stack in the set, made all of them miss: each put out the one that came next.
  static constexpr uint32_t kWays = 8;
  static constexpr uint32_t kWords = 28'000;  // 224 KiB: three hundred stacks of 60 frames
  static_assert(kWords < UINT16_MAX);

  uint16_t* SetFor(uint64_t sp, uint64_t hint) {
    return index_[((sp >> 4) * 0x9e3779b97f4a7c15 ^ hint * 0xc2b2ae3d27d4eb4f) >> 56];
  }

  uint16_t index_[kSets][kWays];  // 1 + first word of the entry, in turn; 0: none from here on
  uint32_t random_;               // which way of a full set goes
  uint32_t used_words_;
  uint64_t words_[kWords];
};

}  // namespace ranktap::agent::stacks
