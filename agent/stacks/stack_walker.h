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

// Innermost frame first. slots[i]: where on the stack ips[i] was found, 0 where it was not there.
struct RawStack {
  uint32_t frames;
  bool complete;  // reached the outermost frame
  uint64_t ips[kMaxFrames];
  uint64_t slots[kMaxFrames];
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

  WalkEnd Walk(const Registers& registers, const StackBounds& bounds, RawStack& stack);

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
