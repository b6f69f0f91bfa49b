// What `ranktap top` makes of two looks at a collector.
#include "collector/cli/top_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace ranktap::collector {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kSecond = 1'000'000'000;

// Ranks of one job at a moment; `fill` says what each does.
TopLook Look(uint64_t at_ns, uint32_t ranks,
             const std::function<void(uint32_t, v1::LiveStatus*)>& fill) {
  TopLook look{.at_ns = at_ns, .answers = {}};
  CollectorAnswer answer{.socket = "here", .reply = {}};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    v1::ProcessStatus& process = *answer.reply.add_processes();
    process.set_session(rank + 1);
    process.set_job("job");
    process.set_rank(rank);
    process.set_state(v1::ProcessStatus::STATE_CONNECTED);
    fill(rank, process.mutable_live());
  }
  look.answers.push_back(answer);
  return look;
}

std::vector<uint32_t> RanksOf(const std::vector<TopRow>& rows) {
  std::vector<uint32_t> ranks;
  for (const TopRow& row : rows) ranks.push_back(row.process.rank());
  return ranks;
}

TEST(TopRowsTest, TheRankThatWaitsLessThanTheOthersIsLateAndComesFirstWithItsCause) {
  const TopLook before = Look(0, 4, [](uint32_t, v1::LiveStatus*) {});
  const TopLook now = Look(10 * kSecond, 4, [](uint32_t rank, v1::LiveStatus* live) {
    live->set_collective_ns(rank == 2 ? kSecond : 6 * kSecond);
    live->set_data_ns(rank == 2 ? 5 * kSecond : kSecond / 10);
  });
  const std::vector<TopRow> rows = RowsOf(before, now);
  EXPECT_THAT(RanksOf(rows), ElementsAre(2, 0, 1, 3));
  EXPECT_EQ(rows[0].cause, "data loading 50 %, others 1 %");
  EXPECT_EQ(rows[1].cause, "");
}

TEST(TopRowsTest, OfTwoRanksTheOneThatWaitsLessIsLate) {
  const TopLook before = Look(0, 2, [](uint32_t, v1::LiveStatus*) {});
  const TopLook now = Look(10 * kSecond, 2, [](uint32_t rank, v1::LiveStatus* live) {
    live->set_collective_ns(rank == 0 ? 0 : 6 * kSecond);
  });
  EXPECT_EQ(RowsOf(before, now)[0].cause, "its host or device works longer");
}

TEST(TopRowsTest, RanksThatWaitAlikeAreNotLate) {
  const TopLook before = Look(0, 4, [](uint32_t, v1::LiveStatus*) {});
  const TopLook now = Look(10 * kSecond, 4, [](uint32_t rank, v1::LiveStatus* live) {
    live->set_collective_ns(3 * kSecond + rank * kSecond / 5);
  });
  const std::vector<TopRow> rows = RowsOf(before, now);
  for (const TopRow& row : rows) EXPECT_EQ(row.cause, "");
}

TEST(TopRowsTest, ADevicesShareIsOfTheTimeThatItsRecordsCover) {
  // Records reach to 1 s before each look, and to 3 s before the second: 8 s, all of them busy.
  const TopLook before = Look(10 * kSecond, 1, [](uint32_t, v1::LiveStatus* live) {
    live->set_device_age_ns(kSecond);
    live->set_busy_ns(5 * kSecond);
  });
  const TopLook now = Look(20 * kSecond, 1, [](uint32_t, v1::LiveStatus* live) {
    live->set_device_age_ns(3 * kSecond);
    live->set_busy_ns(13 * kSecond);
    live->set_exposed_ns(2 * kSecond);
  });
  const std::vector<TopRow> rows = RowsOf(before, now);
  EXPECT_DOUBLE_EQ(rows[0].busy.value_or(0), 1.0);
  EXPECT_DOUBLE_EQ(rows[0].waits.value_or(0), 0.25);
}

TEST(TopRowsTest, ADeviceThatStoodStillForLongIsNotBusy) {
  const TopLook before = Look(0, 1, [](uint32_t, v1::LiveStatus* live) {
    live->set_device_age_ns(kSecond);
    live->set_busy_ns(kSecond);
  });
  const TopLook now = Look(10 * kSecond, 1, [](uint32_t, v1::LiveStatus* live) {
    live->set_device_age_ns(11 * kSecond);
    live->set_busy_ns(kSecond);
  });
  EXPECT_DOUBLE_EQ(RowsOf(before, now)[0].busy.value_or(-1), 0);
}

TEST(TopRowsTest, AWaitIsToldAfterFiveOfTheLongestSteps) {
  const auto look = [](uint64_t open_ns) {
    return Look(100 * kSecond, 4, [open_ns](uint32_t rank, v1::LiveStatus* live) {
      live->add_step_ns(8 * kSecond);
      if (rank == 1) return;
      live->set_collective_ns_open(open_ns);
      live->set_collective("gloo:allreduce");
    });
  };
  EXPECT_THAT(WaitSentences(RowsOf(look(0), look(39 * kSecond))), IsEmpty());
  std::vector<TopRow> rows = RowsOf(look(0), look(41 * kSecond));
  EXPECT_EQ(rows[0].process.rank(), 1u) << "whom the others wait for comes first";
  rows[0].line = "train.py:31 evaluate";
  EXPECT_THAT(WaitSentences(rows),
              ElementsAre("3 of 4 ranks of job wait in gloo:allreduce, for 41.00 s; rank 1 is not "
                          "in it: it is at train.py:31 evaluate"));
}

TEST(TopRowsTest, UntilAStepHasEndedAWaitIsToldAfterTwoMinutes) {
  const auto look = [](uint64_t open_ns) {
    return Look(
        0, 2, [open_ns](uint32_t, v1::LiveStatus* live) { live->set_collective_ns_open(open_ns); });
  };
  EXPECT_THAT(WaitSentences(RowsOf(look(0), look(119 * kSecond))), IsEmpty());
  EXPECT_THAT(WaitSentences(RowsOf(look(0), look(121 * kSecond))),
              ElementsAre(HasSubstr(
                  "2 of 2 ranks of job wait in a collective, for 121.0 s; none outside of it")));
}

TEST(TopRowsTest, AUsualStepIsHalfAsHighAsItGets) {
  EXPECT_EQ(Sparkline({100, 100, 200, 900, 10}, 60, 100, false), "44881");
  EXPECT_EQ(Sparkline({100, 100, 200}, 2, 100, true), "▄█");
  EXPECT_EQ(Sparkline({}, 60, 0, true), "");
}

TEST(TopRowsTest, WhatIsLostIsToldUnderTheTable) {
  const TopLook look = Look(0, 1, [](uint32_t, v1::LiveStatus*) {});
  std::vector<TopRow> rows = RowsOf(look, look);
  rows[0].process.set_lost(1200);
  EXPECT_THAT(TopTable(rows, 12, true).notes, ElementsAre("rank 0 lost 1,200 events"));
}

}  // namespace
}  // namespace ranktap::collector
