// One frame after the other.
// Runs on: user threads.  May not: see stack_walker.h.
#include "agent/stacks/stack_walker.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "agent/stacks/libunwind_step.h"
#include "agent/stacks/module_table.h"

namespace ranktap::agent::stacks {
namespace {

uint64_t Word(uint64_t address) { return *reinterpret_cast<const uint64_t*>(address); }

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" does nothing on Grace
#endif
}

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
      if (!mine_) Pause();
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

void Begin(const StackBounds& bounds, uint32_t generation, RawStack& stack) {
  stack.frames = 0;
  stack.complete = false;
  stack.by_rules = true;
  stack.generation = generation;
  stack.bounds = bounds;
}

void Append(uint64_t ip, uint64_t sp, uint64_t bp, RawStack& stack) {
  const uint32_t i = stack.frames++;
  stack.ips[i] = ip;
  stack.slots[i] = sp - 8;
  stack.bps[i] = bp;
  stack.saves[i] = 0;
}

// The last walk of the same stack. A frame's registers and the two words that it is left by say all
// about its caller's registers: while they are the same, so is what follows.
class Before {
 public:
  Before(const RawStack* last, const RawStack& now) {
    if (last != nullptr && last->by_rules && last->generation == now.generation &&
        last->bounds.low == now.bounds.low && last->bounds.high == now.bounds.high) {
      last_ = last;
      frames_ = last->frames;
    }
  }

  // Appends the frame with these registers, and those after it that the last walk knew. False: it
  // was not in that one.
  bool Append(uint64_t ip, uint64_t sp, uint64_t bp, RawStack& stack) {
    while (next_ < frames_ && last_->slots[next_] < sp - 8) ++next_;
    if (next_ == frames_ || last_->slots[next_] != sp - 8 || last_->ips[next_] != ip ||
        last_->bps[next_] != bp) {
      return false;
    }
    while (stack.frames < kMaxFrames) {
      Copy(next_++, stack);
      if (next_ == frames_ || !LedHere(next_)) break;
    }
    return true;
  }

 private:
  // The words of the last walk by which frame i - 1 was left.
  bool LedHere(uint32_t i) const {
    const uint64_t saved = last_->saves[i - 1];
    return Word(last_->slots[i]) == last_->ips[i] && (saved == 0 || Word(saved) == last_->bps[i]);
  }

  void Copy(uint32_t from, RawStack& stack) const {
    const uint32_t to = stack.frames++;
    stack.ips[to] = last_->ips[from];
    stack.slots[to] = last_->slots[from];
    stack.bps[to] = last_->bps[from];
    stack.saves[to] = last_->saves[from];
  }

  const RawStack* last_ = nullptr;
  uint32_t frames_ = 0;
  uint32_t next_ = 0;
};

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

WalkEnd StackWalker::Walk(const Registers& registers, const StackBounds& bounds,
                          const RawStack* last, RawStack& stack) {
  Begin(bounds, rules_.generation(), stack);
  Before before(last, stack);
  // Each in a register: as a struct the compiler joins them in memory, at 3 ns a frame.
  uint64_t ip = registers.ip, sp = registers.sp, bp = registers.bp;
  WalkEnd end = WalkEnd::kBroken;
  while (stack.frames < kMaxFrames) {
    if (before.Append(ip, sp, bp, stack)) {
      const uint32_t i = stack.frames - 1;
      ip = stack.ips[i], sp = stack.slots[i] + 8, bp = stack.bps[i];
    } else {
      Append(ip, sp, bp, stack);
    }
    FrameRule rule = rules_.Find(ip);
    if (rule.type == FrameType::kUnknown) [[unlikely]] {
      rule = Learn({.ip = ip, .sp = sp, .bp = bp}, bounds, end);
      if (rule.type == FrameType::kUnknown) return end;
    }
    if (rule.type != FrameType::kStandard) [[unlikely]] {
      if (rule.type == FrameType::kOther) return WalkAll(bounds, stack);
      stack.complete = true;
      return WalkEnd::kComplete;
    }
    const uint64_t cfa = (rule.cfa_is_rsp ? sp : bp) + static_cast<int64_t>(rule.cfa_offset);
    const uint64_t slot = cfa - 8;
    if (cfa <= sp || !IsWordIn(bounds, slot)) return WalkEnd::kBroken;
    if (rule.rbp_saved) {
      const uint64_t saved = cfa + static_cast<int64_t>(rule.rbp_offset);
      if (saved < registers.sp || !IsWordIn(bounds, saved)) return WalkEnd::kBroken;
      bp = Word(saved);
      stack.saves[stack.frames - 1] = saved;
    }
    ip = Word(slot);
    sp = cfa;
    if (ip == 0) {
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
  stack.by_rules = false;
  if (stack.complete) return WalkEnd::kComplete;
  return stack.frames == kMaxFrames ? WalkEnd::kTooDeep : WalkEnd::kBroken;
}

}  // namespace ranktap::agent::stacks
