// How many threads share the rings' memory, and how much of it there is.
#include <sys/stat.h>

#include <barrier>
#include <mutex>

#include "agent/core/sanitizers.h"
#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent {
namespace {

TEST_F(Rings, AThousandThreadsThatEmitLittleHaveRoomAtOnce) {
  (void)TakeAll(true);
  constexpr int kThreads = 1000, kRounds = 20;
  constexpr uint64_t kEvents = 50;  // 1,000 a thread: 24 KB
  uint64_t lost = 0;
  std::map<uint32_t, uint64_t> stored;
  {
    std::barrier round(kThreads + 1);
    std::mutex mutex;
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        ThreadState* thread = ThreadState::Current();
        ASSERT_NE(thread, nullptr);
        for (int i = 0; i < kRounds; ++i) {
          EmitSome(*thread, kEvents);
          round.arrive_and_wait();
          round.arrive_and_wait();
        }
        const std::lock_guard lock(mutex);
        lost += proto::Total(LossesOf(SlotOf(thread->writer())));
      });
    }
    for (int i = 0; i < kRounds; ++i) {
      round.arrive_and_wait();
      segment_->Grow();
      for (const auto& [writer, ranges] : TakeAll(true)) stored[writer] += ranges.size();
      round.arrive_and_wait();
    }
  }
  EXPECT_EQ(lost, 0u);
  EXPECT_EQ(stored.size(), size_t{kThreads});
  for (const auto& [writer, events] : stored) EXPECT_EQ(events, kRounds * kEvents);
  (void)TakeAll(true);
}

TEST_F(Rings, ManyShortThreadsNeedABlockEach) {
  (void)TakeAll(true);
  constexpr int kThreads = 5000;
  for (int i = 0; i < kThreads; ++i) {
    OnNewThread([](ThreadState& thread) {
      segment_->Grow();
      EmitSome(thread, 10);
    });
  }
  uint64_t stored = 0;
  for (const auto& [writer, ranges] : TakeAll(true)) stored += ranges.size();
  EXPECT_EQ(stored, kThreads * 10u) << "nothing was acknowledged before the last one's end";
}

TEST_F(Rings, NewThreadsHaveABlockEachWhereTheSenderDoesNotComeToRun) {
  Segment fresh;
  ASSERT_TRUE(fresh.Create(32 << 20, kSession));
  for (int i = 0; i < 4000; ++i) {
    const char name[16] = "short";
    proto::WriterSlot* const slot = fresh.AcquireSlot(proto::WriterKind::kThread, i, name);
    ASSERT_NE(slot, nullptr) << i;
    proto::Chunk* pending = nullptr;
    ASSERT_NE(fresh.LendChunk({.writer = slot->id.load()}, pending), nullptr) << i;
  }
}

// Six groups, of which two are there from the start, and a block for each of 380 threads at once.
TEST_F(Rings, ThreadsThatFindNothingFreeAtOnceDoNotClaimAllForThemselves) {
#if defined(RANKTAP_UNDER_TSAN) || defined(RANKTAP_UNDER_QEMU)
  constexpr int kRounds = 4;  // a thread costs it a millisecond
#else
  constexpr int kRounds = 20;
#endif
  for (int round = 0; round < kRounds; ++round) {
    Segment fresh;
    ASSERT_TRUE(fresh.Create(2'560 << 10, kSession));
    constexpr int kThreads = 380;
    ASSERT_GE(fresh.AllBlocks(), uint32_t{kThreads});
    std::barrier begin(kThreads);
    std::atomic<int> without{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        begin.arrive_and_wait();
        const char name[16] = "at once";
        proto::WriterSlot* const slot = fresh.AcquireSlot(proto::WriterKind::kThread, t, name);
        proto::Chunk* pending = nullptr;
        const uint32_t writer = slot == nullptr ? 0 : slot->id.load();
        without += slot == nullptr || fresh.LendChunk({.writer = writer}, pending) == nullptr;
      });
    }
    threads.clear();
    ASSERT_EQ(without, 0) << "round " << round << ", " << fresh.AllBlocks() << " blocks";
  }
}

TEST_F(Rings, MemoryThatNobodyUsesIsNotTaken) {
  Segment fresh;
  ASSERT_TRUE(fresh.Create(32 << 20, kSession));
  struct stat status;
  ASSERT_EQ(fstat(fresh.fd(), &status), 0);
  EXPECT_LE(status.st_blocks * 512, 11 << 20);
  while (fresh.Grow()) {
  }
  ASSERT_EQ(fstat(fresh.fd(), &status), 0);
  EXPECT_LE(status.st_blocks * 512, 11 << 20) << "it grows with use alone";
}

TEST_F(Rings, AThreadThatTheCollectorCannotServeIsToldFromTooManyThreads) {
  (void)TakeAll(true);
  OnNewThread([&](ThreadState& thread) {
    EmitRanges(thread, 0, 1'500'000);
    const proto::LossCounts lost = LossesOf(SlotOf(thread.writer()));
    EXPECT_GT(lost[static_cast<size_t>(Loss::kRingFull)], 0u);
    EXPECT_EQ(lost[static_cast<size_t>(Loss::kRingShare)], 0u);
  });
  (void)TakeAll(true);
}

TEST_F(Rings, ThreadsThatComeAndGoReuseSlots) {
  (void)TakeAll(true);
  std::map<uint32_t, int> writers;
  constexpr int kThreads = 3000;
  for (int i = 0; i < kThreads; ++i) {
    ++writers[OnNewThread([i](ThreadState& thread) { EmitRanges(thread, i, 1); })];
    if (i % 50 == 0) (void)TakeAll(true);
  }
  (void)TakeAll(true);
  EXPECT_EQ(writers.size(), size_t{kThreads}) << "every thread is a writer of its own";
}

}  // namespace
}  // namespace ranktap::agent
