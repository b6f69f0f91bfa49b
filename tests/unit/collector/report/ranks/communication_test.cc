// Communication and clocks on jobs whose answers are known.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "collector/facts/clock_alignment.h"
#include "collector/facts/collective_types.h"
#include "collector/facts/shared_clock.h"
#include "collector/report/reports.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

TEST(Comm, TransferIsWithoutTheWaitForTheLastRank) {
  SyntheticJob job({.steps = 10, .late = {{.rank = 1, .ns = 300'000}}});
  const Table table = TabulateComm(job.run(), {});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "group"), "default_pg");
  EXPECT_EQ(CellAt<std::string>(table, 0, "type"), "allreduce");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "calls"), 30);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "group_size"), 4);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "transfer_ns"), 80'000);
  // Three of four wait 300 us in one of three layers.
  EXPECT_EQ(CellAt<int64_t>(table, 0, "wait_ns"), 300'000 * 3 / 4 / 3);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "exposed_ns"), 80'000 + 75'000);
  // 30 of 120 kernels take 380 us, the others 80.
  EXPECT_EQ(CellAt<int64_t>(table, 0, "kernel_ns"), 155'000);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "kernel_median_ns"), 80'000);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "kernel_p95_ns"), 380'000);
  const double squares = 30 * 225e3 * 225e3 + 90 * 75e3 * 75e3;
  EXPECT_EQ(CellAt<int64_t>(table, 0, "kernel_stddev_ns"), std::llround(std::sqrt(squares / 119)));
  const double algbw = 4.0 * (1 << 20) / 80'000;
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "algbw_gb_per_s"), algbw);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "busbw_gb_per_s"), algbw * 2 * 3 / 4);
}

TEST(Comm, TheRankThatIsMostOftenLastIsNamed) {
  SyntheticJob job({.layers = 1, .steps = 10, .late = {{.rank = 3, .ns = 50'000}}});
  const Table table = TabulateComm(job.run(), {});
  EXPECT_EQ(CellAt<int64_t>(table, 0, "last_rank"), 3);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "last_percent"), 100);
}

TEST(Comm, OneTracedMemberHasNoWait) {
  SyntheticJob job({});
  job.run().traces.resize(1);
  const Table table = TabulateComm(job.run(), {});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[0][ColumnNamed(table, "wait_ns")]));
  ASSERT_FALSE(table.notes.empty());
}

TEST(Comm, FactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(BusFactor("allreduce", 8), 2 * 7 / 8.0);
  for (const char* const type : {"allgather", "reducescatter", "alltoall", "gather", "scatter"}) {
    EXPECT_DOUBLE_EQ(BusFactor(type, 8), 7 / 8.0) << type;
  }
  for (const char* const type : {"broadcast", "reduce", "sendrecv"}) {
    EXPECT_DOUBLE_EQ(BusFactor(type, 8), 1) << type;
  }
}

TEST(Align, PlantedOffsetsAndDriftsAreFoundWithinTheirInterval) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> of_one(-1, 1);
    JobShape shape{.ranks = 5, .seed = seed, .steps = 50, .jitter_ns = 60'000};
    shape.clocks.resize(5);
    for (size_t rank = 1; rank < 5; ++rank) {
      shape.clocks[rank] = {static_cast<int64_t>(of_one(random) * 1e9), of_one(random) * 40};
    }
    SyntheticJob job(shape);
    for (const ClockDifference& found : AlignClocks(job.run(), MatchCollectives(job.run()))) {
      const Clock& planted = shape.clocks[found.trace];
      ASSERT_TRUE(found.known);
      EXPECT_NEAR(found.drift_ppm, planted.drift_ppm, 0.05);
      const auto shown = static_cast<double>(planted.Local(found.at) - found.at);
      EXPECT_NEAR(found.offset_ns, shown, 100);
      if (found.trace == 0) continue;
      EXPECT_LE(found.low_ns, shown + 100);
      EXPECT_GE(found.high_ns, shown - 100);
      EXPECT_LE(found.residual_ns, 100);
    }
  }
}

TEST(Align, RanksThatNeverMeetAreJoinedOverThoseThatDo) {
  // Ranks 0 and 1 share groups, 1 and 2 do: rank 2 is known through 1.
  JobShape shape{.ranks = 3, .steps = 20};
  shape.clocks = {{0}, {1'000'000, 10}, {-2'000'000, -5}};
  SyntheticJob job(shape);
  std::vector<CollectiveRun> calls = MatchCollectives(job.run());
  for (size_t i = 0; i < calls.size(); ++i) {
    auto& members = calls[i].members;
    i % 2 == 0 ? members.erase(members.begin()) : std::prev(members.erase(members.end() - 1));
  }
  const std::vector<ClockDifference> found = AlignClocks(job.run(), calls);
  ASSERT_TRUE(found[2].known);
  EXPECT_TRUE(found[2].through_others);
  EXPECT_NEAR(found[2].drift_ppm, -5, 0.1);
  EXPECT_NEAR(found[2].offset_ns,
              static_cast<double>(shape.clocks[2].Local(found[2].at) - found[2].at), 200);
}

TEST(Align, ARankWithoutCollectivesIsNotKnownAndTheOthersAreOnOneClockAllTheSame) {
  JobShape shape{.ranks = 2};
  shape.clocks = {{0}, {1'000'000}};
  SyntheticJob job(shape);
  job.run().traces.emplace_back().info.rank = 2;
  EXPECT_FALSE(AlignClocks(job.run(), MatchCollectives(job.run()))[2].known);
  const SharedClock clock(job.run());
  EXPECT_FALSE(clock.is_known());
  EXPECT_NEAR(clock.At(1, 5'000'000), 4'000'000, 100);
  EXPECT_EQ(clock.At(2, 5'000'000), 5'000'000);
}

}  // namespace
}  // namespace ranktap::collector
