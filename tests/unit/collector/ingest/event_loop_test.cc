// The loop's calls: which, in which order, and on which thread.
#include "collector/ingest/net/event_loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;

// Readable from the start, until it is read.
FileDescriptor ReadyDescriptor() { return FileDescriptor(::eventfd(1, EFD_CLOEXEC)); }

class EventLoopTest : public ::testing::Test {
 protected:
  uint64_t now_ns_ = 0;
  EventLoop loop_{[this] { return now_ns_; }};
};

TEST_F(EventLoopTest, APostedTaskRunsOnTheLoopsThread) {
  std::thread::id ran_on;
  std::thread poster([&] { loop_.Post([&] { ran_on = std::this_thread::get_id(); }); });
  // Waits without a limit: the task has to wake it.
  while (ran_on == std::thread::id()) (void)loop_.RunOnce(-1);
  poster.join();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST_F(EventLoopTest, TasksRunInTheOrderInWhichTheyWerePosted) {
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) loop_.Post([&order, i] { order.push_back(i); });
  (void)loop_.RunOnce(-1);
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST_F(EventLoopTest, ATaskThatPostsItselfDoesNotKeepTheLoopFromReturning) {
  int runs = 0;
  EventLoop::Task again = [&] {
    ++runs;
    loop_.Post(again);
  };
  loop_.Post(again);
  (void)loop_.RunOnce(-1);
  EXPECT_EQ(runs, 1);
  (void)loop_.RunOnce(-1);
  EXPECT_EQ(runs, 2);
}

TEST_F(EventLoopTest, TimersFireInTheOrderOfTheirInstantsAndThenOfTheCalls) {
  std::vector<int> order;
  loop_.After(30, [&] { order.push_back(4); });
  loop_.After(10, [&] { order.push_back(1); });
  loop_.After(20, [&] { order.push_back(2); });
  loop_.After(20, [&] { order.push_back(3); });
  now_ns_ = 30;
  (void)loop_.RunOnce(-1);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST_F(EventLoopTest, ATimerFiresOnceAndNotBeforeItsInstant) {
  int fired = 0;
  loop_.After(10, [&] { ++fired; });
  now_ns_ = 9;
  (void)loop_.RunOnce(0);
  EXPECT_EQ(fired, 0);
  now_ns_ = 10;
  (void)loop_.RunOnce(-1);
  (void)loop_.RunOnce(0);
  EXPECT_EQ(fired, 1);
}

TEST_F(EventLoopTest, ATimerThatIsDueWhenItIsSetFiresInTheSameTurn) {
  std::vector<int> order;
  loop_.After(0, [&] {
    order.push_back(1);
    loop_.After(0, [&] { order.push_back(2); });
  });
  (void)loop_.RunOnce(-1);
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_F(EventLoopTest, AReadyDescriptorIsReportedUntilItIsRead) {
  const FileDescriptor ready = ReadyDescriptor();
  int calls = 0;
  loop_.Watch(ready.get(), EPOLLIN, [&](uint32_t events) {
    EXPECT_EQ(events, static_cast<uint32_t>(EPOLLIN));
    uint64_t value = 0;
    if (++calls == 2) {
      EXPECT_EQ(::read(ready.get(), &value, sizeof(value)), 8);
    }
  });
  EXPECT_FALSE(loop_.RunOnce(-1));
  EXPECT_FALSE(loop_.RunOnce(-1));
  EXPECT_TRUE(loop_.RunOnce(0)) << "nothing is left";
  EXPECT_EQ(calls, 2);
}

TEST_F(EventLoopTest, AnEventThatWasFetchedIsNotDeliveredAfterItsDescriptorIsUnwatched) {
  const FileDescriptor first = ReadyDescriptor(), second = ReadyDescriptor();
  EventLoop::Tag tags[2] = {};
  int calls = 0;
  // Both are ready: one turn fetches both events, and whichever comes first unwatches both.
  const auto on_ready = [&](uint32_t) {
    ++calls;
    for (const EventLoop::Tag tag : tags) loop_.Unwatch(tag);
  };
  tags[0] = loop_.Watch(first.get(), EPOLLIN, on_ready);
  tags[1] = loop_.Watch(second.get(), EPOLLIN, on_ready);
  (void)loop_.RunOnce(-1);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(loop_.RunOnce(0));
}

TEST_F(EventLoopTest, AFetchedEventIsNotDeliveredToANewDescriptorOfTheSameNumber) {
  FileDescriptor descriptors[2] = {ReadyDescriptor(), ReadyDescriptor()};
  EventLoop::Tag tags[2] = {};
  int calls = 0, calls_of_new = 0;
  for (int i = 0; i < 2; ++i) {
    const auto replace_other = [&, other = 1 - i](uint32_t) {
      ++calls;
      if (calls > 1) return;
      const int number = descriptors[other].get();
      loop_.Unwatch(tags[other]);
      const FileDescriptor silent(::eventfd(0, EFD_CLOEXEC));
      ASSERT_EQ(::dup3(silent.get(), number, O_CLOEXEC), number);
      tags[other] = loop_.Watch(number, EPOLLIN, [&](uint32_t) { ++calls_of_new; });
    };
    tags[i] = loop_.Watch(descriptors[i].get(), EPOLLIN, replace_other);
  }
  (void)loop_.RunOnce(-1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(calls_of_new, 0);
}

TEST_F(EventLoopTest, WhatADescriptorIsWatchedForCanChange) {
  const FileDescriptor ready = ReadyDescriptor();
  int calls = 0;
  const EventLoop::Tag tag = loop_.Watch(ready.get(), EPOLLIN, [&](uint32_t) { ++calls; });
  EXPECT_TRUE(loop_.Rewatch(tag, 0));
  EXPECT_TRUE(loop_.RunOnce(0));
  EXPECT_TRUE(loop_.Rewatch(tag, EPOLLIN));
  EXPECT_FALSE(loop_.RunOnce(-1));
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, ADescriptorThatTheKernelRefusesHasNoTag) {
  EXPECT_EQ(loop_.Watch(-1, EPOLLIN, [](uint32_t) {}), 0u);
  loop_.Unwatch(0);
}

TEST_F(EventLoopTest, WhilePausedTasksAndTimersRunAndDescriptorsWait) {
  const FileDescriptor ready = ReadyDescriptor();
  bool paused = true;
  int calls = 0, tasks = 0, timers = 0;
  loop_.PauseWhile([&] { return paused; });
  loop_.Watch(ready.get(), EPOLLIN, [&](uint32_t) { ++calls; });
  loop_.Post([&] { ++tasks; });
  loop_.After(0, [&] { ++timers; });
  EXPECT_FALSE(loop_.RunOnce(-1)) << "paused is not quiet: nobody has looked";
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(tasks, 1);
  EXPECT_EQ(timers, 1);
  paused = false;
  (void)loop_.RunOnce(-1);
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, APauseThatBeginsInATurnHoldsBackItsOtherEvents) {
  const FileDescriptor first = ReadyDescriptor(), second = ReadyDescriptor();
  int calls = 0;
  loop_.PauseWhile([&] { return calls > 0; });
  loop_.Watch(first.get(), EPOLLIN, [&](uint32_t) { ++calls; });
  loop_.Watch(second.get(), EPOLLIN, [&](uint32_t) { ++calls; });
  (void)loop_.RunOnce(-1);
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, WhatIsReleasedLivesUntilTheCallHasReturned) {
  auto object = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = object;
  bool alive_in_call = false, alive_after = true;
  loop_.Post([&] {
    loop_.Release(std::move(object));
    alive_in_call = !seen.expired();
  });
  loop_.Post([&] { alive_after = !seen.expired(); });
  (void)loop_.RunOnce(-1);
  EXPECT_TRUE(alive_in_call);
  EXPECT_FALSE(alive_after);
}

}  // namespace
}  // namespace ranktap::collector
