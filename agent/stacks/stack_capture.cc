// Memo, walk, dictionary entry.
// Runs on: see stack_capture.h.  May not: let anything of a walk outlive it.
#include "agent/stacks/stack_capture.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <span>

#include "agent/core/agent_state.h"
#include "agent/core/log.h"
#include "agent/stacks/module_table.h"
#include "agent/stacks/stack_memo.h"
#include "agent/stacks/stack_walker.h"

namespace ranktap::agent::stacks {

constinit std::atomic<uint32_t> g_stack_sites{0};
constinit std::atomic<bool> g_modules_wanted{false};

namespace {

using proto::ArenaRef;

// The memory of a thread that takes stacks, lent to it until it ends.
struct Block {
  std::atomic<uint32_t> lent;  // 0: free; cleared by the thread's end (ThreadState::lease)
  bool busy;                   // a signal handler that launches finds it set
  uint32_t lookups_left;       // of bounds
  uint64_t calls;              // for the sampling rate
  StackBounds bounds;
  CostFields cost;     // its stack... alone
  RawStack stacks[2];  // the last two walks, in turn
  uint32_t current;    // of them
  uint32_t encoded[1 + kMaxFrames * proto::kMostWordsAFrame];
  StackMemo memo;
};

constexpr uint32_t kBlocks = 16;
constexpr uint32_t kFullCheckEvery = 256;
constexpr uint32_t kMostBoundsLookups = 64;
constexpr uint64_t kRoomForAWalk = 16u << 10;

constinit StackWalker g_walker;
constinit Block* g_blocks = nullptr;
constinit std::atomic<bool> g_prepared{false};
constinit std::atomic<uint32_t> g_sample_every{1};
constinit std::atomic<uint64_t> g_threads_refused{0};

bool Prepare() {
  if (g_prepared.load()) return true;
  void* memory = mmap(nullptr, sizeof(Block) * kBlocks, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || !ModuleTable::Create() || !g_walker.Create()) {
    Log("no stacks: no memory for them");
    return false;
  }
  g_blocks = static_cast<Block*>(memory);
  ModuleTable::Refresh(Names());
  g_prepared.store(true, std::memory_order_release);
  return true;
}

Block* BlockOf(ThreadState& thread) {
  if (thread.lease != nullptr) [[likely]] {
    return reinterpret_cast<Block*>(thread.lease);  // its first member
  }
  if (!g_prepared.load(std::memory_order_acquire)) return nullptr;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    Block& block = g_blocks[i];
    if (block.lent.load(std::memory_order_relaxed) != 0 ||
        block.lent.exchange(1, std::memory_order_acquire) != 0) {
      continue;
    }
    block.busy = false;
    block.bounds = {};
    block.lookups_left = kMostBoundsLookups;
    block.stacks[block.current].by_rules = false;  // another thread's
    block.memo.Clear();
    thread.lease = &block.lent;
    return &block;
  }
  return nullptr;
}

bool KnowStack(Block& block, uint64_t sp) {
  if (block.bounds.Contain(sp)) [[likely]]
    return sp - block.bounds.low >= kRoomForAWalk;
  if (block.lookups_left == 0) return false;
  --block.lookups_left;
  block.bounds = FindStackBounds(sp);
  return block.bounds.Contain(sp) && sp - block.bounds.low >= kRoomForAWalk;
}

ArenaRef Intern(Block& block, uint32_t first) {
  const RawStack& stack = block.stacks[block.current];
  uint32_t* end = block.encoded;
  *end++ = stack.complete ? 0 : proto::kStackTruncated;
  uint64_t previous = 0;
  for (uint32_t i = first; i < stack.frames; ++i) {
    end = proto::AppendStackFrame(end, previous, stack.ips[i]);
    previous = stack.ips[i];
  }
  const std::span words(block.encoded, static_cast<size_t>(end - block.encoded));
  const ArenaRef ref = Names().Intern(proto::EntryKind::kStack, std::as_bytes(words));
  if (ref == 0) ++block.cost.stacks_unnamed;
  return ref;
}

ArenaRef WalkAndIntern(Block& block, const Registers& registers, uint64_t hint, bool with_last) {
  const uint32_t generation = g_walker.rules().generation();
  const RawStack& last = block.stacks[block.current];
  block.current ^= 1;
  RawStack& stack = block.stacks[block.current];
  const WalkEnd end = g_walker.Walk(registers, block.bounds, with_last ? &last : nullptr, stack);
  if (end == WalkEnd::kBusy) {
    ++block.cost.stacks_refused;
    return 0;
  }
  if (end == WalkEnd::kUnknownModule) g_modules_wanted.store(true, std::memory_order_relaxed);
  if (end != WalkEnd::kComplete) ++block.cost.stacks_truncated;
  uint32_t first = 0;
  while (first < stack.frames && ModuleTable::IsOwn(stack.ips[first])) ++first;
  if (first == stack.frames) return 0;
  const ArenaRef ref = Intern(block, first);
  // We do not keep a stack that ends at a module which comes into the table in a moment.
  if (ref != 0 && end != WalkEnd::kUnknownModule) {
    (void)block.memo.Keep(registers.sp, hint, generation, stack, ref);
  }
  return ref;
}

// The address of this very instruction, so that the unwind table's row for it holds.
inline __attribute__((always_inline)) Registers ReadRegisters() {
  Registers registers;
#if defined(__x86_64__)
  asm volatile("leaq 1f(%%rip), %0\n1:\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=&r"(registers.ip), "=&r"(registers.sp), "=&r"(registers.bp));
#elif defined(__aarch64__)
  asm volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29"
               : "=&r"(registers.ip), "=&r"(registers.sp), "=&r"(registers.bp));
#endif
  return registers;
}

class Busy {
 public:
  explicit Busy(Block& block) : block_(block) { block_.busy = true; }
  ~Busy() { block_.busy = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Block& block_;
};

}  // namespace

uint32_t SitesOf(proto::StackPolicy policy, proto::Level level) {
  constexpr auto bit = [](StackSite site) { return 1u << static_cast<uint32_t>(site); };
  constexpr uint32_t kLaunches = bit(StackSite::kLaunch);
  constexpr uint32_t kSyncs = kLaunches | bit(StackSite::kSynchronize);
  constexpr uint32_t kAll = kSyncs | bit(StackSite::kAllocate) | bit(StackSite::kCopy);
  if (level < proto::Level::kKernels) return 0;
  switch (policy) {
    case proto::StackPolicy::kAuto:
      return level >= proto::Level::kFull ? kAll : 0;
    case proto::StackPolicy::kOff:
      return 0;
    case proto::StackPolicy::kLaunch:
      return kLaunches;
    case proto::StackPolicy::kSync:
      return kSyncs;
    case proto::StackPolicy::kAll:
      return kAll;
  }
  return 0;
}

void SetStackLevel(proto::Level level) {
  const uint32_t sites = SitesOf(Config().stacks, level);
  g_sample_every.store(std::max(Config().stacks_sample, 1u));
  g_stack_sites.store(sites != 0 && Prepare() ? sites : 0);
}

void RefreshModules() {
  if (!g_prepared.load()) return;
  if (ModuleTable::Refresh(Names())) g_walker.rules().ForgetAll();
}

__attribute__((noinline)) ArenaRef CaptureStackNow(ThreadState& thread, uint64_t hint) {
  Block* block = BlockOf(thread);
  if (block == nullptr) {
    g_threads_refused.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  const uint32_t sample_every = g_sample_every.load(std::memory_order_relaxed);
  if (sample_every > 1 && block->calls++ % sample_every != 0) return 0;
  if (block->busy) {
    ++block->cost.stacks_refused;
    return 0;
  }
  const Busy busy(*block);
  const Registers registers = ReadRegisters();
  if (!KnowStack(*block, registers.sp)) {
    ++block->cost.stacks_refused;
    return 0;
  }
  StackMemo::Entry* known = block->memo.Find(registers.sp, hint, g_walker.rules().generation());
  if (known != nullptr && ++known->uses % kFullCheckEvery != 0) [[likely]] {
    ++block->cost.stacks;
    ++block->cost.stack_memo_hits;
    return known->stack;
  }
  const ArenaRef remembered = known == nullptr ? 0 : known->stack;
  // A full check trusts nothing that was seen before.
  const ArenaRef ref = WalkAndIntern(*block, registers, hint, known == nullptr);
  if (remembered != 0 && ref != 0 && ref != remembered) {
    ++block->cost.stack_memo_errors;
    block->memo.Clear();
  }
  if (ref != 0) ++block->cost.stacks;
  return ref;
}

void AddStackCost(CostFields& cost) {
  if (!g_prepared.load(std::memory_order_acquire)) return;
  // Without synchronisation: each counter has one writer, and is never set back.
  for (uint32_t i = 0; i < kBlocks; ++i) {
    for (const CostCounter& counter : kCostCounters) {
      cost.*counter.member += g_blocks[i].cost.*counter.member;
    }
  }
  cost.stack_frames_learnt += g_walker.frames_learnt();
  cost.stack_slow_walks += g_walker.slow_walks();
  cost.stacks_refused += g_threads_refused.load();
}

}  // namespace ranktap::agent::stacks
