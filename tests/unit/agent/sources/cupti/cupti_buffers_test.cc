#include "agent/sources/cupti/cupti_buffers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace ranktap::agent::cupti {
namespace {

TEST(CuptiBuffersTest, AnEmptyPoolLendsDiscardBuffersThenASharedOne) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(3 * BufferPool::kBufferBytes, /*may_refuse=*/false));
  std::set<uint8_t*> lent;
  size_t bytes = 0;
  for (int i = 0; i < 3; ++i) {
    lent.insert(pool.TakeFree(&bytes));
    EXPECT_EQ(bytes, BufferPool::kBufferBytes);
  }
  for (int i = 0; i < 4; ++i) {
    lent.insert(pool.TakeFree(&bytes));
    EXPECT_LT(bytes, BufferPool::kBufferBytes);
  }
  EXPECT_EQ(lent.size(), 7u) << "each is lent once";
  uint8_t* shared = pool.TakeFree(&bytes);
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(pool.TakeFree(&bytes), shared);
  EXPECT_FALSE(lent.contains(shared));

  pool.Complete(shared, 10, nullptr);
  pool.Complete(shared, 10, nullptr);
  EXPECT_EQ(pool.TakeCompleted(), nullptr) << "what several threads wrote to is not read";
  EXPECT_EQ(pool.TakeSharedCompleted(), 2u);
  EXPECT_EQ(pool.TakeSharedCompleted(), 0u);
}

TEST(CuptiBuffersTest, WhoeverAwaitsAllBuffersIsWokenByTheLast) {
  constexpr uint64_t kNever = UINT64_MAX / 2;
  BufferPool pool;
  ASSERT_TRUE(pool.Create(8 * BufferPool::kBufferBytes, false));
  size_t bytes = 0;
  uint8_t* const first = pool.TakeFree(&bytes);
  uint8_t* const second = pool.TakeFree(&bytes);
  EXPECT_FALSE(pool.AwaitReturn(0)) << "the moment has passed";
  std::thread late([&] {
    pool.Complete(first, 0, nullptr);
    pool.Complete(second, 0, nullptr);
  });
  EXPECT_TRUE(pool.AwaitReturn(kNever));
  late.join();
  EXPECT_TRUE(pool.AwaitReturn(0)) << "none was taken since";
}

TEST(CuptiBuffersTest, WhereCuptiCountsItsDropsAnExhaustedPoolRefuses) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(BufferPool::kBufferBytes, /*may_refuse=*/true));
  size_t bytes = 1;
  for (int i = 0; i < 5; ++i) EXPECT_NE(pool.TakeFree(&bytes), nullptr);
  EXPECT_EQ(pool.TakeFree(&bytes), nullptr);
  EXPECT_EQ(bytes, 0u);
}

TEST(CuptiBuffersTest, APoolThatRunsLowSaysSoOnce) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(8 * BufferPool::kBufferBytes, false));
  size_t bytes = 0;
  for (int i = 0; i < 5; ++i) (void)pool.TakeFree(&bytes);
  EXPECT_FALSE(pool.TakeRunningLow());
  (void)pool.TakeFree(&bytes);
  EXPECT_TRUE(pool.TakeRunningLow());
  (void)pool.TakeFree(&bytes);
  EXPECT_FALSE(pool.TakeRunningLow());
}

TEST(CuptiBuffersTest, CompletedBuffersComeOldestFirstAndGoBackZeroed) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(2 * BufferPool::kBufferBytes, false));
  size_t bytes = 0;
  uint8_t* first = pool.TakeFree(&bytes);
  uint8_t* second = pool.TakeFree(&bytes);
  std::memset(first, 0xab, 100);
  pool.Complete(first, 100, nullptr);
  pool.Complete(second, 0, nullptr);

  BufferPool::Buffer* completed = pool.TakeCompleted();
  ASSERT_NE(completed, nullptr);
  EXPECT_EQ(completed->data, first);
  EXPECT_EQ(completed->valid_bytes, 100u);
  EXPECT_FALSE(completed->discard);
  ASSERT_NE(completed->next, nullptr);
  EXPECT_EQ(completed->next->data, second);
  EXPECT_EQ(completed->next->next, nullptr);

  pool.Recycle(*completed);
  EXPECT_EQ(pool.TakeFree(&bytes), first);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(first[i], 0) << i;
}

TEST(CuptiBuffersTest, ALargeOneIsFourOfThePoolAndAsLongAsThereIsRoomForIt) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(8 * BufferPool::kBufferBytes, false));
  size_t bytes = 0;
  uint8_t* small = pool.TakeFree(&bytes);
  uint8_t* large = pool.TakeFree(&bytes, /*large=*/true);
  EXPECT_EQ(bytes, 4 * BufferPool::kBufferBytes);
  EXPECT_EQ(large - small, std::ptrdiff_t{4 * BufferPool::kBufferBytes});
  std::memset(large, 0xab, bytes);
  (void)pool.TakeFree(&bytes, /*large=*/true);
  EXPECT_EQ(bytes, BufferPool::kBufferBytes) << "no four side by side are left";
  pool.Complete(large, 4 * BufferPool::kBufferBytes, nullptr);
  BufferPool::Buffer* completed = pool.TakeCompleted();
  ASSERT_NE(completed, nullptr);
  EXPECT_EQ(completed->data, large);
  pool.Recycle(*completed);
  EXPECT_EQ(pool.TakeFree(&bytes, /*large=*/true), large);
  EXPECT_EQ(large[4 * BufferPool::kBufferBytes - 1], 0);
}

TEST(CuptiBuffersTest, WaitingEndsWithABatchAndNotWithOneBuffer) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(64 * BufferPool::kBufferBytes, false));
  size_t bytes = 0;
  constexpr uint64_t kMs = 1'000'000, kMinute = 60'000 * kMs;
  pool.Complete(pool.TakeFree(&bytes), 0, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  pool.WaitForCompleted(20 * kMs);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(15));
  std::jthread completer([&pool] {
    size_t size = 0;
    for (uint32_t i = 1; i < BufferPool::kMostInABatch; ++i) {
      pool.Complete(pool.TakeFree(&size), 0, nullptr);
    }
  });
  pool.WaitForCompleted(kMinute);
  completer.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  int taken = 0;
  for (auto* done = pool.TakeCompleted(); done != nullptr; done = done->next) ++taken;
  EXPECT_EQ(taken, static_cast<int>(BufferPool::kMostInABatch));
}

TEST(CuptiBuffersTest, AWakeBeforeTheWaitIsNotLost) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(64 * BufferPool::kBufferBytes, false));
  constexpr uint64_t kMinute = 60'000'000'000;
  const auto begin = std::chrono::steady_clock::now();
  pool.Wake();
  pool.AwaitWake(kMinute);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(CuptiBuffersTest, DiscardBuffersAreMarkedAndGoBackToTheirOwn) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(1 * BufferPool::kBufferBytes, false));
  size_t bytes = 0;
  (void)pool.TakeFree(&bytes);
  uint8_t* discard = pool.TakeFree(&bytes);
  std::memset(discard, 0xcd, 64);
  pool.Complete(discard, 64, nullptr);
  BufferPool::Buffer* completed = pool.TakeCompleted();
  ASSERT_NE(completed, nullptr);
  EXPECT_TRUE(completed->discard);
  pool.Recycle(*completed);
  EXPECT_EQ(pool.TakeFree(&bytes), discard);
  EXPECT_EQ(discard[63], 0);
}

TEST(CuptiBuffersTest, ManyThreadsNeverShareABufferOfThePool) {
  BufferPool pool;
  ASSERT_TRUE(pool.Create(64 * BufferPool::kBufferBytes, false));
  constexpr int kThreads = 8;
  std::atomic<int> clashes{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < 5000; ++round) {
          size_t bytes = 0;
          uint8_t* data = pool.TakeFree(&bytes);
          if (*data != 0) ++clashes;
          *data = static_cast<uint8_t>(t + 1);
          if (*data != t + 1) ++clashes;
          pool.Complete(data, 1, nullptr);
          for (auto* done = pool.TakeCompleted(); done != nullptr;) {
            auto* next = done->next;
            pool.Recycle(*done);
            done = next;
          }
        }
      });
    }
  }
  EXPECT_EQ(clashes.load(), 0);
}

}  // namespace
}  // namespace ranktap::agent::cupti
