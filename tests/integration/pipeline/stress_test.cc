// Everything between a program's thread and the file at once, in one process, so that a sanitizer
// sees it all: threads that come and go write into the rings, the agent's sender ships them, the
// collector stores them. STRESS_SECONDS says for how long.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "agent/core/agent_state.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/segment.h"
#include "agent/core/writer.h"
#include "agent/transport/messages.h"
#include "agent/transport/sender.h"
#include "collector/trace/load/trace_check.h"
#include "tests/fault_seed.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap {
namespace {

using agent::ThreadState;
using Clock = std::chrono::steady_clock;

// A program's thread: ranges whose names are interned, inline or seen by all threads at once.
void WriteRanges(agent::Arena& arena, uint32_t seed) {
  ThreadState* const thread = ThreadState::Current();
  if (thread == nullptr) return;  // more threads than writers: nothing was produced
  std::mt19937 random(seed);
  for (uint32_t left = 100 + random() % 1000; left > 0; --left) {
    proto::RangePushEvent push{};
    push.time_ticks = agent::NowTicks();
    if (random() % 8 == 0) {
      const std::string text = "text " + std::to_string(random() % 50);
      thread->EmitWith(push, std::as_bytes(std::span(text)), {});
    } else {
      push.nvtx.name = arena.InternText("range " + std::to_string(random() % 300));
      thread->Emit(push);
    }
    thread->Emit(proto::RangePopEvent{.time_ticks = agent::NowTicks()});
  }
}

TEST(PipelineStressTest, EveryEventOfThreadsThatComeAndGoIsStoredOrCounted) {
  const std::array<uint8_t, 16> session = {4, 2};
  auto* const segment = new agent::Segment;  // never destroyed, as in a program
  ASSERT_TRUE(segment->Create(16 << 20, session.data()));
  ASSERT_TRUE(agent::ThreadStates::Create(*segment));
  ASSERT_TRUE(agent::MapCapturePage());
  agent::ChooseHostClock();
  auto* const arena = new agent::Arena;
  arena->Attach(*segment, new std::atomic<uint64_t>[agent::Arena::kTableSlots]());

  collector::TestCollector collector;
  const std::string hello = agent::EncodeHello({.session = session,
                                                .process = agent::ReadProcessInfo({}),
                                                .rank = {},
                                                .loaded_by = proto::LoadedBy::kPreload,
                                                .level = proto::Level::kRanges,
                                                .host_clock = agent::g_host_clock,
                                                .segment_bytes = segment->bytes(),
                                                .notes = {}});
  auto* const sender = new agent::Sender(*segment, *arena,
                                         {.socket_path = collector.socket(),
                                          .hello = hello,
                                          .spool = {},
                                          .on_level = [](const agent::LevelOrder&) {},
                                          .on_beat = [] {},
                                          .add_cost = [](agent::CostFields&) {}});
  sender->TryConnect();
  ASSERT_TRUE(sender->Start());

  const auto seconds = FromEnvironment("STRESS_SECONDS", 2);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  std::mt19937 random(FaultSeed());
  uint64_t threads_made = 0;
  while (Clock::now() < end) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i, ++threads_made) {
      threads.emplace_back([arena, seed = random()] { WriteRanges(*arena, seed); });
    }
    threads.clear();
    // Of every eight waves seven leave the sender time, and one comes on top of another.
    if (threads_made % 64 != 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto in_ns = [](int more_seconds) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (static_cast<uint64_t>(now.tv_sec) + static_cast<uint64_t>(more_seconds)) *
           1'000'000'000;
  };
  sender->Finish(in_ns(5), in_ns(5));
  collector.Finish(2'000);

  const auto check = collector::CheckRun(collector.run_path());
  ASSERT_TRUE(check.ok()) << check.message();
  EXPECT_TRUE(check->problems.empty());
  ASSERT_EQ(check->traces.size(), 1u);
  for (const auto& problem : check->traces[0].problems) ADD_FAILURE() << problem.what;
  const collector::Run run = collector.Load();
  uint64_t produced = 0, stored = 0, lost = 0;
  for (const collector::Writer& writer : run.traces[0].writers) {
    produced += writer.account.produced();
    stored += writer.events;
    lost += proto::Total(writer.lost) + proto::Total(writer.declared);
  }
  EXPECT_EQ(produced, stored + lost);
  EXPECT_GT(stored, 0u);
  std::printf("%lu threads in %lu s: %lu events produced, %lu stored, %lu counted as lost\n",
              threads_made, seconds, produced, stored, lost);
}

}  // namespace
}  // namespace ranktap
