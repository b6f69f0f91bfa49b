// One frame after the other.
// Runs on: user threads.  May not: see stack_walker.h.
#include "agent/stacks/stack_walker.h"

#include <emmintrin.h>

#include "agent/stacks/libunwind_step.h"
#include "agent/stacks/module_table.h"

namespace ranktap::agent::stacks {
namespace {

uint64_t Word(uint64_t address) { return *reinterpret_cast<const uint64_t*>(address); }

bool IsWordIn(const StackBounds& bounds, uint64_t address) {
  return (address & 7) == 0 && address >= bounds.low && address + 8 <= bounds.high;
}

// One thread at a time learns: libunwind's pools have locks, and a thread that is cancelled or
// jumps out of a signal handler in there must stop nobody but itself.
class LearningTurn {
 public:
  explicit LearningTurn(std::atomic<uint32_t>& taken) : taken_(taken) {
    constexpr int kPatience = 20'000;  // about 100 us: thirty frames of another thread's
    for (int i = 0; i < kPatience && !mine_; ++i) {
      mine_ = taken_.exchange(1, std::memory_order_acquire) == 0;
      if (!mine_) _mm_pause();
    }
  }
  ~LearningTurn() {
    if (mine_) taken_.store(0, std::memory_order_release);
  }
  LearningTurn(const LearningTurn&) = delete;
  LearningTurn& operator=(const LearningTurn&) = delete;
  bool mine() const { return mine_; }

 private:
  std::atomic<uint32_t>& taken_;
  bool mine_ = false;
};

FrameRule FromLearnt(const RanktapFrameRule& learnt) {
  constexpr int32_t kMostCfa = 1 << 22, kMostRbp = 1 << 14;
  FrameRule rule{.type = FrameType::kOther};
  switch (learnt.type) {
    case RANKTAP_FRAME_STANDARD:
      if (learnt.cfa_offset > -kMostCfa && learnt.cfa_offset < kMostCfa &&
          learnt.rbp_offset > -kMostRbp && learnt.rbp_offset < kMostRbp) {
        rule = {.type = FrameType::kStandard,
                .cfa_is_rsp = learnt.cfa_is_rsp != 0,
                .rbp_saved = learnt.rbp_saved != 0,
                .cfa_offset = learnt.cfa_offset,
                .rbp_offset = learnt.rbp_offset};
      }
      break;
    case RANKTAP_FRAME_LAST:
      rule.type = FrameType::kLast;
      break;
    case RANKTAP_FRAME_NONE:
      rule.type = FrameType::kUnknown;
      break;
    default:
      break;
  }
  return rule;
}

}  // namespace

bool StackWalker::Create() {
  if (!rules_.Create()) return false;
  RanktapUnwindPrepare();
  return true;
}

FrameRule StackWalker::Learn(const Registers& registers, const StackBounds& bounds, WalkEnd& end) {
  if (ModuleTable::Find(registers.ip - 1) == nullptr) {
    end = WalkEnd::kUnknownModule;
    return {};
  }
  const LearningTurn turn(learning_);
  if (!turn.mine()) {
    end = WalkEnd::kBusy;
    return {};
  }
  const uint32_t generation = rules_.generation();
  const RanktapRegisters at{.ip = registers.ip, .sp = registers.sp, .bp = registers.bp};
  RanktapFrameRule learnt;
  RanktapUnwindLearn(&at, bounds.low, bounds.high, &learnt);
  learnt_.fetch_add(1, std::memory_order_relaxed);
  const FrameRule rule = FromLearnt(learnt);
  if (rule.type == FrameType::kUnknown) {
    end = WalkEnd::kNoTable;
  } else {
    rules_.Keep(registers.ip, rule, generation);
  }
  return rule;
}

WalkEnd StackWalker::Walk(const Registers& registers, const StackBounds& bounds, RawStack& stack) {
  Registers at = registers;
  stack.frames = 0;
  stack.complete = false;
  WalkEnd end = WalkEnd::kBroken;
  uint64_t slot = 0;
  while (stack.frames < kMaxFrames) {
    stack.ips[stack.frames] = at.ip;
    stack.slots[stack.frames++] = slot;
    FrameRule rule = rules_.Find(at.ip);
    if (rule.type == FrameType::kUnknown) [[unlikely]] {
      rule = Learn(at, bounds, end);
      if (rule.type == FrameType::kUnknown) return end;
    }
    if (rule.type != FrameType::kStandard) [[unlikely]] {
      if (rule.type == FrameType::kOther) return WalkAll(bounds, stack);
      stack.complete = true;
      return WalkEnd::kComplete;
    }
    const uint64_t cfa = (rule.cfa_is_rsp ? at.sp : at.bp) + static_cast<int64_t>(rule.cfa_offset);
    slot = cfa - 8;
    if (cfa <= at.sp || !IsWordIn(bounds, slot)) return WalkEnd::kBroken;
    if (rule.rbp_saved) {
      const uint64_t saved = cfa + static_cast<int64_t>(rule.rbp_offset);
      if (saved < registers.sp || !IsWordIn(bounds, saved)) return WalkEnd::kBroken;
      at.bp = Word(saved);
    }
    at.ip = Word(slot);
    at.sp = cfa;
    if (at.ip == 0) {
      stack.complete = true;
      return WalkEnd::kComplete;
    }
  }
  return WalkEnd::kTooDeep;
}

// Its innermost frames are ours, as those of Walk are: whoever asked drops them.
WalkEnd StackWalker::WalkAll(const StackBounds& bounds, RawStack& stack) {
  const LearningTurn turn(learning_);
  if (!turn.mine()) return WalkEnd::kBusy;
  slow_.fetch_add(1, std::memory_order_relaxed);
  int complete = 0;
  stack.frames = static_cast<uint32_t>(
      RanktapUnwindAll(bounds.low, bounds.high, stack.ips, stack.slots, kMaxFrames, &complete));
  stack.complete = complete != 0;
  if (stack.complete) return WalkEnd::kComplete;
  return stack.frames == kMaxFrames ? WalkEnd::kTooDeep : WalkEnd::kBroken;
}

}  // namespace ranktap::agent::stacks
