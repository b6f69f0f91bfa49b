// What a stack of 50 frames costs the thread that launches: known by the memo, known frame by frame
// in a combination that is new, and with frames never seen. The floor of the first two is reading
// the 50 return addresses from a list of where they are.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "agent/core/agent_state.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/segment.h"
#include "agent/core/writer.h"
#include "agent/stacks/stack_capture.h"
#include "agent/stacks/stack_walker.h"
#include "proto/encode_entry.h"
#include "tests/bench/figure.h"

namespace ranktap::bench {
namespace {

using agent::CostFields;
using agent::stacks::CaptureStackNow;

constexpr int kFrames = 50;
constexpr int kOthers = 9;  // above and below the recursion, from _start to the capture itself

// What to do at the bottom of the recursion.
struct Leaf {
  void (*body)(Leaf&);
  agent::ThreadState* thread;
  uint64_t hint = 1;
  std::vector<double> times;
};

void Descend(int depth, uint64_t turns, Leaf& leaf);

__attribute__((noinline)) void Left(int depth, uint64_t turns, Leaf& leaf) {
  Descend(depth, turns, leaf);
  asm volatile("" : : : "memory");
}
__attribute__((noinline)) void Right(int depth, uint64_t turns, Leaf& leaf) {
  Descend(depth, turns, leaf);
  asm volatile("" : : : "memory");
}

CostFields StackCostNow() {
  CostFields cost;
  agent::stacks::AddStackCost(cost);
  return cost;
}

// Two frames a level. The lowest bits of `turns` decide by which function.
__attribute__((noinline)) void Descend(int depth, uint64_t turns, Leaf& leaf) {
  if (depth <= 0) {
    leaf.body(leaf);
  } else if ((turns & 1) != 0) {
    Left(depth - 2, turns >> 1, leaf);
  } else {
    Right(depth - 2, turns >> 1, leaf);
  }
  asm volatile("" : : : "memory");
}

constexpr int kLoop = 2000;

void CaptureInLoop(Leaf& leaf) {
  const double start = NowNs();
  for (int i = 0; i < kLoop; ++i) Keep(CaptureStackNow(*leaf.thread, leaf.hint));
  leaf.times.push_back((NowNs() - start) / kLoop);
}

// Fifty words, one in every third cache line, as return addresses lie.
void ReadSlots(Leaf& leaf) {
  std::array<uint64_t, kFrames * 24> memory{};
  Keep(memory);
  const double start = NowNs();
  for (int i = 0; i < kLoop; ++i) {
    uint64_t sum = 0;
    for (int slot = 0; slot < kFrames; ++slot) sum += memory[static_cast<size_t>(slot) * 24];
    Keep(sum);
    asm volatile("" : : : "memory");
  }
  leaf.times.push_back((NowNs() - start) / kLoop);
}

void CaptureOnce(Leaf& leaf) {
  const double start = NowNs();
  Keep(CaptureStackNow(*leaf.thread, leaf.hint));
  leaf.times.push_back(NowNs() - start);
}

void ReadClockTwice(Leaf& leaf) {
  const double start = NowNs();
  leaf.times.push_back(NowNs() - start);
}

double Median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

using Turns = uint64_t (*)(uint64_t round);
constexpr uint64_t kEveryLevel = (uint64_t{1} << (kFrames - kOthers + 1) / 2) - 1;

template <uint64_t turns>
uint64_t Same(uint64_t) {
  return turns;
}
uint64_t All(uint64_t round) { return round; }
// Two levels differ from the stack before, on average.
uint64_t Next(uint64_t round) { return 0x1000 + round; }
// All levels do.
uint64_t Opposite(uint64_t round) {
  return (0x8000 + round / 2) ^ (round % 2 == 0 ? 0 : kEveryLevel);
}

double Run(void (*body)(Leaf&), agent::ThreadState* thread, Turns turns, uint64_t rounds) {
  Leaf leaf{.body = body, .thread = thread, .times = {}};
  for (uint64_t i = 0; i < rounds; ++i) Descend(kFrames - kOthers, turns(i), leaf);
  return Median(leaf.times);
}

proto::ArenaRef g_last = 0;

proto::ArenaRef CaptureFrom(agent::ThreadState* thread) {
  (void)Run(
      [](Leaf& leaf) {
        g_last = CaptureStackNow(*leaf.thread, leaf.hint), leaf.times.push_back(0);
      },
      thread, &Same<0b1010>, 1);
  return g_last;
}

int Main() {
  static agent::Segment segment;
  static agent::Arena arena;
  static agent::AgentConfig config;
  config.stacks = proto::StackPolicy::kAll;
  const uint8_t session[16] = {};
  if (!segment.Create(32 << 20, session) || !agent::ThreadStates::Create(segment) ||
      !agent::MapCapturePage()) {
    return 1;
  }
  agent::ChooseHostClock();
  arena.Attach(segment, new std::atomic<uint64_t>[agent::Arena::kTableSlots]());
  agent::g_agent = {.config = &config, .names = &arena, .segment = &segment.header()};
  agent::stacks::SetStackLevel(proto::Level::kFull);
  agent::ThreadState* thread = agent::ThreadState::Current();

  const double first = Run(&CaptureOnce, thread, &Same<0b1010>, 1);
  const uint64_t learnt = StackCostNow().stack_frames_learnt;
  const double second_thread_free = Run(&CaptureOnce, thread, &Same<0b1010>, 1);
  // As many as it says: of the stack that both of the above are.
  const auto* entry = arena.Find(CaptureFrom(thread));
  if (entry == nullptr || entry->bytes == 0) return 1;
  const std::span content = agent::Arena::ContentOf(*entry);
  std::vector<uint32_t> words(content.size() / sizeof(uint32_t));
  std::memcpy(words.data(), content.data(), words.size() * sizeof(uint32_t));
  const size_t frames = proto::StackDistances(words).size();
  const double clock = Run(&ReadClockTwice, thread, &Same<0>, 101);
  const double floor = Run(&ReadSlots, thread, &Same<0>, 51);
  const double hit = Run(&CaptureInLoop, thread, &Same<0b1010>, 51);
  (void)Run(&CaptureOnce, thread, &All, 256);  // both ways at every level are known after it
  (void)Run(&CaptureOnce, thread, &Same<kEveryLevel>, 1);
  const CostFields before = StackCostNow();
  constexpr uint64_t kNew = 4000;
  const double combination = Run(&CaptureOnce, thread, &Next, kNew) - clock;
  const double opposite = Run(&CaptureOnce, thread, &Opposite, kNew) - clock;
  const CostFields after = StackCostNow();

  Print({.name = "stack of 50 frames, memo hit",
         .value = hit,
         .unit = "ns",
         .floor_name = "reading 50 words",
         .floor = floor,
         .target = 250});
  Print({.name = "stack of 50 frames, new combination of known frames",
         .value = combination,
         .unit = "ns",
         .floor_name = "reading 50 words",
         .floor = floor,
         .target = 600});
  Print({.name = "the same, with no frame in common with the last stack",
         .value = opposite,
         .unit = "ns",
         .floor_name = "reading 50 words",
         .floor = floor,
         .target = 600,
         .note = std::to_string(frames) + " frames; of both " +
                 std::to_string(after.stack_frames_learnt - before.stack_frames_learnt) +
                 " addresses learnt, " +
                 std::to_string(after.stack_memo_hits - before.stack_memo_hits) + " memo hits"});
  Print({.name = "first sight of a frame, in the first stack of a thread",
         .value = (first - second_thread_free) / static_cast<double>(learnt),
         .unit = "ns",
         .note = std::to_string(learnt) + " addresses, the stack's bounds among it"});
  return 0;
}

}  // namespace
}  // namespace ranktap::bench

int main() { return ranktap::bench::Main(); }
