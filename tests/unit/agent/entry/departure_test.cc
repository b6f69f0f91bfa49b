// Whose threads the process still has.
#include "agent/entry/departure.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "agent/core/host_clock.h"
#include "agent/core/own_thread.h"

namespace ranktap::agent {
namespace {

TEST(DepartureTest, OursRunButBetweenAPauseAndItsEnd) {
  EXPECT_TRUE(ThreadsMayRun());
  PauseThreads();
  EXPECT_FALSE(ThreadsMayRun());
  ResumeThreads();
  EXPECT_TRUE(ThreadsMayRun());
}

TEST(DepartureTest, AThreadOfOursLeavesTheProgramAloneAndOneOfItsOwnDoesNot) {
  WatchProgram();
  ASSERT_TRUE(ProgramIsAlone());
  std::latch end(1);
  OwnThread ours;
  ASSERT_TRUE(ours.Start({.name = "test",
                          .nice = 0,
                          .stack_bytes = 256 << 10,
                          .body = [](void* latch) { static_cast<std::latch*>(latch)->wait(); },
                          .owner = &end}));
  EXPECT_TRUE(ProgramIsAlone());
  std::thread other([&end] { end.wait(); });
  EXPECT_FALSE(ProgramIsAlone());
  EXPECT_FALSE(ProgramHasLeft()) << "the main thread is here";
  end.count_down();
  other.join();
  constexpr uint64_t kPatience = 30'000'000'000;
  EXPECT_TRUE(WaitForOwnThreadsEnd(NowNs() + kPatience));
}

}  // namespace
}  // namespace ranktap::agent
