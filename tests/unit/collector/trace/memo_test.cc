// What is worked out once and kept: each value by whoever asks first, different ones at once.
#include "collector/trace/memo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ranktap::collector {
namespace {

struct StepFact {
  int count = 0;
};
struct KernelFact {
  int count = 0;
};

TEST(MemoTest, ThreadsMakeDifferentValuesAtOnce) {
  const Memo memo;
  std::latch both_are_making(2);
  std::thread other([&] {
    memo.Get<KernelFact>([&] {
      both_are_making.arrive_and_wait();
      return KernelFact{3};
    });
  });
  const StepFact& steps = memo.Get<StepFact>([&] {
    both_are_making.arrive_and_wait();
    return StepFact{2};
  });
  other.join();
  EXPECT_EQ(steps.count, 2);
  EXPECT_EQ(memo.Get<KernelFact>([] { return KernelFact{0}; }).count, 3);
}

TEST(MemoTest, AValueIsMadeOnceAndTheOthersWaitForIt) {
  constexpr int kThreads = 8;
  const Memo memo;
  std::atomic<int> made = 0;
  std::latch all_are_there(kThreads);
  std::vector<const StepFact*> got(kThreads);
  {
    std::vector<std::jthread> threads;
    for (const StepFact*& of : got) {
      threads.emplace_back([&] {
        all_are_there.arrive_and_wait();
        of = &memo.Get<StepFact>([&] {
          ++made;
          std::this_thread::yield();
          return StepFact{2};
        });
      });
    }
  }
  EXPECT_EQ(made, 1);
  EXPECT_THAT(got, ::testing::Each(&memo.Get<StepFact>([] { return StepFact(); })));
  EXPECT_EQ(got[0]->count, 2);
}

TEST(MemoTest, AValueAsksForAnotherHereAndOnAThreadThatItWaitsFor) {
  const Memo memo;
  const auto kernels = [&] { return memo.Get<KernelFact>([] { return KernelFact{3}; }).count; };
  const StepFact& steps = memo.Get<StepFact>([&] {
    int seen = 0;
    std::thread([&] { seen = kernels(); }).join();
    return StepFact{seen + kernels()};
  });
  EXPECT_EQ(steps.count, 6);
}

TEST(MemoTest, AValueThatThrewIsMadeByTheNextThatAsks) {
  const Memo memo;
  EXPECT_THROW(memo.Get<StepFact>([]() -> StepFact { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(memo.CountValues().made, 0);
  EXPECT_EQ(memo.Get<StepFact>([] { return StepFact{2}; }).count, 2);
}

TEST(MemoTest, CountsWhatWasMadeAgain) {
  Memo memo;
  const auto ask = [&memo] {
    memo.Get<StepFact>([] { return StepFact(); });
    memo.Get<KernelFact>([] { return KernelFact(); });
  };
  ask(), ask();
  EXPECT_EQ(memo.CountValues().made, 2);
  EXPECT_EQ(memo.CountValues().kept, 2);
  memo.Reset();
  EXPECT_EQ(memo.CountValues().kept, 0);
  ask();
  EXPECT_EQ(memo.CountValues().made, 4);
  EXPECT_EQ(memo.CountValues().kept, 2);
}

}  // namespace
}  // namespace ranktap::collector
