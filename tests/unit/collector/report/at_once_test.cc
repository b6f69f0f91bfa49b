// Reports of one run on several threads: what they share is worked out once, and answers stay.
#include "collector/trace/at_once.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "collector/report/report.h"
#include "collector/trace/processors.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

JobShape Job(uint32_t ranks) {
  return {.ranks = ranks,
          .layers = 3,
          .steps = 6,
          .jitter_ns = 3'000,
          .late = {{.rank = 0, .cause = Cause::kDataLoading, .ns = 90'000, .first_step = 4}}};
}

std::vector<const Report*> ReportsOfOneRun() {
  std::vector<const Report*> reports;
  for (const Report& report : AllReports()) {
    if (report.compare == nullptr) reports.push_back(&report);
  }
  return reports;
}

class AtOnceTest : public testing::TestWithParam<uint32_t> {};

TEST_P(AtOnceTest, ReportsAskedAtOnceAnswerAsOneAfterTheOther) {
  SyntheticJob in_turn(Job(GetParam())), at_once(Job(GetParam()));
  const std::vector<const Report*> reports = ReportsOfOneRun();
  size_t answered = 0;
  MakeAtOnce(
      reports.size(), [&](size_t i) { return (*reports[i])(at_once.run()); },
      [&](size_t i, const Table& table) {
        const Table expected = (*reports[i])(in_turn.run());
        EXPECT_EQ(i, answered++);
        EXPECT_EQ(table.title, expected.title) << reports[i]->name;
        EXPECT_EQ(table.rows, expected.rows) << reports[i]->name;
        EXPECT_EQ(table.notes, expected.notes) << reports[i]->name;
        return true;
      });
  EXPECT_EQ(answered, reports.size());
}

TEST_P(AtOnceTest, EachFactOfARunIsMadeOnce) {
  SyntheticJob job(Job(GetParam()));
  for (const Report* const report : ReportsOfOneRun()) (*report)(job.run());
  const auto expect_once = [](const Memo& memo) {
    EXPECT_GT(memo.CountValues().made, 0u);
    EXPECT_EQ(memo.CountValues().made, memo.CountValues().kept);
  };
  expect_once(job.run().memo);
  for (const Trace& trace : job.run().traces) expect_once(trace.memo);
}

INSTANTIATE_TEST_SUITE_P(Ranks, AtOnceTest, testing::Values(1, 4));

// Waits until `count` have come, at most 20 s.
bool WaitFor(const std::atomic<size_t>& count, size_t enough) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (count < enough && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return count >= enough;
}

TEST(ProcessorCountTest, KeepsToTheAffinityOfTheProcess) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_GE(ProcessorCount(), 1u);
  EXPECT_LE(ProcessorCount(), static_cast<size_t>(CPU_COUNT(&allowed)));
}

TEST(ProcessorCountTest, KeepsToTheQuotaOfTheControlGroup) {
  EXPECT_EQ(ProcessorsWithin(8, "150000 100000\n"), 2u);
  EXPECT_EQ(ProcessorsWithin(8, "50000 100000\n"), 1u);
  EXPECT_EQ(ProcessorsWithin(8, "0 100000\n"), 1u);
  EXPECT_EQ(ProcessorsWithin(8, "1600000 100000\n"), 8u);
  EXPECT_EQ(ProcessorsWithin(8, "max 100000\n"), 8u);
  EXPECT_EQ(ProcessorsWithin(8, ""), 8u);
}

TEST(ForEachOnIdleTest, ALoopAloneHasAnotherProcessor) {
  if (ProcessorCount() < 2) GTEST_SKIP() << "one processor";
  std::atomic<size_t> working = 0;
  ForEachOnIdle(2, [&working](size_t) {
    ++working;
    EXPECT_TRUE(WaitFor(working, 2));
  });
}

TEST(ForEachOnIdleTest, ALoopBesideOthersOnAllProcessorsHasItsOwnThreadAlone) {
  const size_t all = ProcessorCount();
  std::atomic<size_t> busy = 0, done = 0;
  ForEachAtOnce(all, [&](size_t) {
    const BusyThreads this_one;
    ++busy;
    EXPECT_TRUE(WaitFor(busy, all));
    const auto self = std::this_thread::get_id();
    ForEachOnIdle(8, [self](size_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
    ++done;
    EXPECT_TRUE(WaitFor(done, all));  // else its processor is idle for the others
  });
}

TEST(ForEachAtOnceTest, WhatAThreadThrowsIsThrownToWhoAsked) {
  std::atomic<int> visits = 0;
  const auto visit = [&visits](size_t i) {
    ++visits;
    if (i == 1) throw std::runtime_error("the second");
  };
  EXPECT_THROW(ForEachOn(3, 4, visit), std::runtime_error);
  EXPECT_LE(visits, 4);
  visits = 0;
  EXPECT_THROW(ForEachOn(0, 4, visit), std::runtime_error);
  EXPECT_EQ(visits, 2);  // no other begins
}

TEST(MakeAtOnceTest, TakesInOrderAndEndsWhereItIsToldTo) {
  std::vector<size_t> taken;
  MakeAtOnce(
      100, [](size_t i) { return i * i; },
      [&taken](size_t i, size_t square) {
        EXPECT_EQ(square, i * i);
        taken.push_back(i);
        return i < 2;
      });
  EXPECT_EQ(taken, (std::vector<size_t>{0, 1, 2}));
}

TEST(MakeAtOnceTest, WhatOneThrowsComesInItsTurn) {
  size_t taken = 0;
  const auto make = [](size_t i) {
    if (i == 1) throw std::runtime_error("no");
    return i;
  };
  EXPECT_THROW(MakeAtOnce(100, make, [&taken](size_t, size_t) { return ++taken > 0; }),
               std::runtime_error);
  EXPECT_EQ(taken, 1u);
}

}  // namespace
}  // namespace ranktap::collector
