// Reports of one run on several threads: what they share is worked out once, and answers stay.
#include "collector/trace/at_once.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "collector/report/report.h"
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
