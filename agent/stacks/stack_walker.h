// Walks the calling thread's stack: by learnt rules, a few ns a frame; by libunwind for a frame
// that is new or unusual.
// Runs on: user threads.  May not: allocate; wait for another thread (who learns frames at the same
// time wins, the other gives up); read outside `bounds`.
#pragma once

#include <cstdint>

#include "agent/stacks/frame_rules.h"
#include "agent/stacks/stack_bounds.h"

namespace ranktap::agent::stacks {

inline constexpr uint32_t kMaxFrames = 192;

// Innermost frame first. slots[i]: where on the stack ips[i] was found, below which the frame of
// its caller begins; of the first one the word below its stack pointer; 0 where it was not there.
struct RawStack {
  uint32_t frames;
  bool complete;  // reached the outermost frame
  uint64_t ips[kMaxFrames];
  uint64_t slots[kMaxFrames];

  // For the next walk. bps[i]: rbp in that frame; saves[i]: where its caller's rbp lies, 0: in rbp.
  bool by_rules;        // from end to end, with the rules of `generation`
  uint32_t generation;  // of the frame rules
  StackBounds bounds;
  uint64_t bps[kMaxFrames];
  uint64_t saves[kMaxFrames];
};

struct Registers {
  uint64_t ip, sp, bp;
};

enum class WalkEnd : uint8_t {
  kComplete,
  kTooDeep,        // more than kMaxFrames
  kUnknownModule,  // an address in no module of the table: generated code, or loaded since
  kNoTable,        // in a module, but no unwind table covers it
  kBroken,         // the frame does not lie on the stack
  kBusy,           // another thread was learning for too long
};

class StackWalker {
 public:
  [[nodiscard]] bool Create();

  // `last`: what the same thread's last walk left, another object than `stack`, or nullptr. If the
  // two stacks are in the same frame, and the words that lead to the next one are unchanged, the
  // walk knows the next frame without its rule.
  WalkEnd Walk(const Registers& registers, const StackBounds& bounds, const RawStack* last,
               RawStack& stack);

  FrameRules& rules() { return rules_; }
  uint64_t frames_learnt() const { return learnt_.load(std::memory_order_relaxed); }
  uint64_t slow_walks() const { return slow_.load(std::memory_order_relaxed); }

 private:
  FrameRule Learn(const Registers& registers, const StackBounds& bounds, WalkEnd& end);
  WalkEnd WalkAll(const StackBounds& bounds, RawStack& stack);

  FrameRules rules_;
  std::atomic<uint32_t> learning_{0};
  std::atomic<uint64_t> learnt_{0}, slow_{0};
};

}  // namespace ranktap::agent::stacks
