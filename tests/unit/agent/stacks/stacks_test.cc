// Walks of this very test's stack, against glibc's backtrace; what the memo believes and when it
// stops; what a walk does with registers that lie.
#include <dlfcn.h>
#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "agent/core/agent_state.h"
#include "agent/core/segment.h"
#include "agent/stacks/module_table.h"
#include "agent/stacks/stack_memo.h"
#include "agent/stacks/stack_walker.h"

namespace ranktap::agent::stacks {
namespace {

using testing::ElementsAreArray;
using testing::Ge;
using testing::SizeIs;

// One of each in a process, as in the agent.
struct World {
  Segment segment;
  Arena arena;
  StackWalker walker;
  std::atomic<uint64_t>* table = new std::atomic<uint64_t>[Arena::kTableSlots]();

  static World& Get() {
    static World* const world = new World;
    return *world;
  }

 private:
  World() {
    const uint8_t session[16] = {};
    EXPECT_TRUE(segment.Create(8 << 20, session));
    arena.Attach(segment, table);
    EXPECT_TRUE(ModuleTable::Create());
    EXPECT_TRUE(walker.Create());
    ModuleTable::Refresh(arena);
  }
};

struct Walked {
  WalkEnd end{};
  RawStack stack{};
  std::vector<void*> truth;  // return addresses, innermost first
};

__attribute__((noinline)) void WalkHere(Walked& walked, const RawStack* last = nullptr) {
  Registers registers;
  asm volatile("leaq 1f(%%rip), %0\n1:\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=&r"(registers.ip), "=&r"(registers.sp), "=&r"(registers.bp));
  walked.end =
      World::Get().walker.Walk(registers, FindStackBounds(registers.sp), last, walked.stack);
  walked.truth.resize(kMaxFrames);
  walked.truth.resize(
      static_cast<size_t>(backtrace(walked.truth.data(), static_cast<int>(kMaxFrames))));
}

__attribute__((noinline)) void Deeper(int depth, Walked& walked) {
  if (depth == 0) {
    WalkHere(walked);
  } else {
    Deeper(depth - 1, walked);
  }
  asm volatile("" : : : "memory");  // no tail call
}

// What both saw beyond WalkHere itself, whose own address differs by where each looked.
void ExpectSameFrames(const Walked& walked) {
  std::vector<void*> found;
  for (uint32_t i = 1; i < walked.stack.frames; ++i) {
    found.push_back(reinterpret_cast<void*>(walked.stack.ips[i]));
  }
  ASSERT_THAT(walked.truth, SizeIs(Ge(2)));
  EXPECT_THAT(found, ElementsAreArray(walked.truth.begin() + 1, walked.truth.end()));
}

TEST(StackWalkerTest, FindsWhatGlibcFinds) {
  Walked walked;
  Deeper(12, walked);
  EXPECT_EQ(walked.end, WalkEnd::kComplete);
  EXPECT_GT(walked.stack.frames, 12u);
  ExpectSameFrames(walked);
}

TEST(StackWalkerTest, LearnsEachAddressOnce) {
  Walked walked;
  Deeper(3, walked);
  const uint64_t learnt = World::Get().walker.frames_learnt();
  for (int i = 0; i < 5; ++i) Deeper(40, walked);
  // The loop's own call of Deeper is the only new address.
  EXPECT_LE(World::Get().walker.frames_learnt(), learnt + 2);
  ExpectSameFrames(walked);
}

TEST(StackWalkerTest, WalksTheStacksOfOtherThreads) {
  Walked walked;
  std::thread([&walked] { Deeper(5, walked); }).join();
  EXPECT_EQ(walked.end, WalkEnd::kComplete);
  ExpectSameFrames(walked);
}

TEST(StackWalkerTest, StopsWhenThereAreTooManyFrames) {
  Walked walked;
  Deeper(2 * kMaxFrames, walked);
  EXPECT_EQ(walked.end, WalkEnd::kTooDeep);
  EXPECT_EQ(walked.stack.frames, kMaxFrames);
  EXPECT_FALSE(walked.stack.complete);
}

void Wander(uint64_t way, Walked& walked, const RawStack* last);

__attribute__((noinline)) void Small(uint64_t way, Walked& walked, const RawStack* last) {
  Wander(way, walked, last);
  asm volatile("" : : : "memory");
}
// Its frame has another size, and its callers another rbp.
__attribute__((noinline)) void Large(uint64_t way, Walked& walked, const RawStack* last) {
  auto* room = static_cast<char*>(__builtin_alloca(16 + way % 64));
  asm volatile("" : : "r"(room) : "memory");
  Wander(way, walked, last);
  asm volatile("" : : "r"(room) : "memory");
}
// Two bits of `way` choose each call; 0b11 ends it.
__attribute__((noinline)) void Wander(uint64_t way, Walked& walked, const RawStack* last) {
  switch (way & 3) {
    case 0:
      Small(way >> 2, walked, last);
      break;
    case 1:
      Large(way >> 2, walked, last);
      break;
    case 2:
      Wander(way >> 2, walked, last);
      break;
    default:
      WalkHere(walked, last);
  }
  asm volatile("" : : : "memory");
}

TEST(StackWalkerTest, TheLastWalkChangesNothingButTheTime) {
  constexpr uint64_t kSeed = 20261122;
  std::mt19937_64 random(kSeed);
  std::array<Walked, 2> walks;
  uint64_t way = 0;
  for (int round = 0; round < 3000; ++round) {
    Walked& walked = walks[static_cast<size_t>(round % 2)];
    const RawStack* last = round == 0 ? nullptr : &walks[static_cast<size_t>(1 - round % 2)].stack;
    // Mostly the way before with some bits changed; it ends after 20 calls at the latest.
    way = round % 7 == 0 ? random() : way ^ (random() & random() & random() & random());
    Wander(way | uint64_t{3} << 40, walked, last);
    ASSERT_EQ(walked.end, WalkEnd::kComplete) << "seed " << kSeed << ", round " << round;
    ExpectSameFrames(walked);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << kSeed << ", round " << round;
  }
}

TEST(StackWalkerTest, RegistersThatLieEndTheWalkAndNothingElse) {
  RawStack stack;
  uint64_t on_stack[64] = {};
  const auto sp = reinterpret_cast<uint64_t>(&on_stack[0]);
  const StackBounds bounds{.low = sp, .high = sp + sizeof(on_stack)};
  const auto in_code = reinterpret_cast<uint64_t>(&WalkHere) + 8;
  for (const uint64_t bp : {uint64_t{0}, uint64_t{8}, sp + 3, sp - 4096, ~uint64_t{0} - 7}) {
    for (const uint64_t ip : {uint64_t{0}, uint64_t{1}, in_code, sp, ~uint64_t{0}}) {
      const WalkEnd end =
          World::Get().walker.Walk({.ip = ip, .sp = sp, .bp = bp}, bounds, nullptr, stack);
      EXPECT_NE(end, WalkEnd::kBusy);
      EXPECT_LT(stack.frames, kMaxFrames);
    }
  }
}

TEST(StackWalkerTest, AnAddressInNoModuleEndsTheStack) {
  RawStack stack;
  uint64_t word = 0;
  const auto sp = reinterpret_cast<uint64_t>(&word);
  EXPECT_EQ(World::Get().walker.Walk({.ip = sp, .sp = sp, .bp = sp},
                                     {.low = sp - 64, .high = sp + 64}, nullptr, stack),
            WalkEnd::kUnknownModule);
  EXPECT_EQ(stack.frames, 1u);
}

TEST(ModuleTableTest, KnowsTheModuleOfAnAddress) {
  World::Get();
  const Module* libc = ModuleTable::Find(reinterpret_cast<uintptr_t>(&backtrace));
  ASSERT_NE(libc, nullptr);
  EXPECT_NE(libc->eh_frame_header, 0u);
  EXPECT_TRUE(ModuleTable::IsMapped(*libc));
  EXPECT_EQ(ModuleTable::Find(8), nullptr);
}

TEST(ModuleTableTest, SeesModulesComeAndGo) {
  World& world = World::Get();
  EXPECT_FALSE(ModuleTable::Refresh(world.arena)) << "nothing was unloaded";
  const uint32_t before = ModuleTable::size();
  void* library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto address = reinterpret_cast<uintptr_t>(dlsym(library, "ns_initparse"));
  ASSERT_NE(address, 0u);
  EXPECT_FALSE(ModuleTable::Refresh(world.arena));
  EXPECT_EQ(ModuleTable::size(), before + 1);
  const Module* module = ModuleTable::Find(address);
  ASSERT_NE(module, nullptr);
  dlclose(library);
  EXPECT_FALSE(ModuleTable::IsMapped(*module));
  EXPECT_TRUE(ModuleTable::Refresh(world.arena));
  EXPECT_EQ(ModuleTable::Find(address), nullptr);
}

TEST(FrameRulesTest, KeepsARuleUntilAllAreForgotten) {
  FrameRules rules;
  ASSERT_TRUE(rules.Create());
  const FrameRule rule{.type = FrameType::kStandard,
                       .cfa_is_rsp = true,
                       .rbp_saved = true,
                       .cfa_offset = -123456,
                       .rbp_offset = -16};
  rules.Keep(0x7fff12345678, rule, rules.generation());
  const FrameRule found = rules.Find(0x7fff12345678);
  EXPECT_EQ(found.type, FrameType::kStandard);
  EXPECT_TRUE(found.cfa_is_rsp && found.rbp_saved);
  EXPECT_EQ(found.cfa_offset, -123456);
  EXPECT_EQ(found.rbp_offset, -16);
  EXPECT_EQ(rules.Find(0x7fff12345679).type, FrameType::kUnknown);
  const uint32_t before = rules.generation();
  rules.ForgetAll();
  EXPECT_EQ(rules.Find(0x7fff12345678).type, FrameType::kUnknown);
  rules.Keep(0x7fff12345678, rule, before);
  EXPECT_EQ(rules.Find(0x7fff12345678).type, FrameType::kUnknown) << "learnt before";
}

TEST(StackMemoTest, BelievesAStackForAsLongAsItsSlotsHoldIt) {
  const auto memo = std::make_unique<StackMemo>();
  memo->Clear();
  std::vector<uint64_t> words(300, 7);
  const auto sp = reinterpret_cast<uint64_t>(words.data());
  RawStack stack{};
  stack.frames = 6;
  stack.ips[0] = 0xbad;  // the walk's own, in no slot
  for (uint32_t i = 1; i < 6; ++i) {
    words[i * 50] = stack.ips[i] = 0x1000 + i;
    stack.slots[i] = sp + i * 50 * 8;
  }
  ASSERT_TRUE(memo->Keep(sp, 1, 1, stack, 99));
  const auto found = [&](uint64_t hint, uint32_t generation) {
    const StackMemo::Entry* entry = memo->Find(sp, hint, generation);
    return entry == nullptr ? 0 : entry->stack;
  };
  EXPECT_EQ(found(1, 1), 99u);
  EXPECT_EQ(found(2, 1), 0u);
  EXPECT_EQ(found(1, 2), 0u);
  words[250] = 0x2000;  // the outermost caller is another one
  EXPECT_EQ(found(1, 1), 0u);
  words[250] = 0x1005;
  EXPECT_EQ(found(1, 1), 99u);
}

// Stacks with one sp and one hint: a function that calls one API from several of its lines.
class CallsOfOneFunction {
 public:
  CallsOfOneFunction() { memo_->Clear(); }
  // Calls from each of the lines in turn, `rounds` times. How many the memo knew in the last round.
  int KnownInLastRound(uint64_t lines, int rounds) {
    int known = 0;
    for (int round = 0; round < rounds; ++round) {
      known = 0;
      for (uint64_t line = 0; line < lines; ++line) known += Call(line) ? 1 : 0;
    }
    return known;
  }

 private:
  bool Call(uint64_t line) {
    words_[3] = 0x1000 + line;
    const auto sp = reinterpret_cast<uint64_t>(words_);
    const auto ref = static_cast<proto::ArenaRef>(line + 1);
    if (const StackMemo::Entry* entry = memo_->Find(sp, 1, 1)) {
      EXPECT_EQ(entry->stack, ref);
      return true;
    }
    RawStack stack{};
    stack.frames = 2;
    stack.ips[0] = words_[3];
    stack.slots[0] = sp + 3 * 8;
    stack.ips[1] = words_[7];
    stack.slots[1] = sp + 7 * 8;
    EXPECT_TRUE(memo_->Keep(sp, 1, 1, stack, ref));
    return false;
  }

  std::unique_ptr<StackMemo> memo_ = std::make_unique<StackMemo>();
  uint64_t words_[8] = {};
};

TEST(StackMemoTest, KnowsEachOfManyCallsFromOneFunction) {
  EXPECT_EQ(CallsOfOneFunction().KnownInLastRound(8, 2), 8);
  // More than it has room for put out some of each other, and not all.
  EXPECT_GT(CallsOfOneFunction().KnownInLastRound(10, 50), 2);
}

TEST(StackMemoTest, StaysWithinItsMemory) {
  const auto memo = std::make_unique<StackMemo>();
  memo->Clear();
  std::vector<uint64_t> words(200, 1);
  const auto sp = reinterpret_cast<uint64_t>(words.data());
  RawStack stack{};
  stack.frames = 120;
  for (uint32_t i = 0; i < 120; ++i) {
    stack.ips[i] = 1;
    stack.slots[i] = sp + i * 8;
  }
  for (uint64_t hint = 0; hint < 5000; ++hint) {
    ASSERT_TRUE(memo->Keep(sp, hint, 1, stack, static_cast<proto::ArenaRef>(hint + 1)));
    const StackMemo::Entry* entry = memo->Find(sp, hint, 1);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->stack, hint + 1);
  }
}

}  // namespace
}  // namespace ranktap::agent::stacks
