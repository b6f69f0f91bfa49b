// What the page draws and the tables made for it, on jobs whose answers are known.
#include "collector/report/page/page.h"

#include <gtest/gtest.h>

#include <map>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/page/page_pictures.h"
#include "collector/report/page/page_tables.h"
#include "collector/report/reports.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

// Nanoseconds by letter.
std::map<char, int64_t> SumOf(const Json& lane) {
  const auto bins = lane["bins"].get<std::string>();
  std::map<char, int64_t> sums;
  for (size_t i = 0; i < bins.size();) {
    const char letter = bins[i++];
    int64_t count = 0;
    while (i < bins.size() && bins[i] >= '0' && bins[i] <= '9')
      count = count * 10 + bins[i++] - '0';
    sums[letter] += std::max<int64_t>(count, 1) * lane["bin_ns"].get<int64_t>();
  }
  return sums;
}

TEST(PageLanes, HoldEachCauseForAsLongAsTheWaterfallSays) {
  SyntheticJob job({.ranks = 3, .steps = 8, .transfer_ns = 90'000});
  const Json lanes = PageLanes(job.run());
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(job.run());
  ASSERT_EQ(lanes["ranks"].size(), 3u);
  for (size_t rank = 0; rank < 3; ++rank) {
    std::map<char, int64_t> sums = SumOf(lanes["ranks"][rank]);
    for (const Cause cause : {Cause::kCompute, Cause::kTransfer, Cause::kMemory}) {
      int64_t truth = 0;
      for (const CauseTimes& times : waterfalls[rank].times) {
        truth += times[static_cast<size_t>(cause)];
      }
      // A bin is of what holds most of it: an edge of a piece is off by half a bin at most.
      const auto off = static_cast<double>(lanes["ranks"][rank]["bin_ns"].get<int64_t>() * 8 * 20);
      EXPECT_NEAR(static_cast<double>(sums[static_cast<char>('a' + static_cast<int>(cause))]),
                  static_cast<double>(truth), off)
          << NameOf(cause) << " of rank " << rank;
      EXPECT_GT(truth, 0);
    }
  }
}

TEST(PageSteps, AreTheStepsOfTheTableInItsOrder) {
  SyntheticJob job({.ranks = 2, .steps = 6});
  const Table table = TabulateSteps(job.run());
  const Json steps = PageSteps(job.run());
  size_t row = 0;
  for (const Json& rank : steps) {
    for (size_t i = 0; i < rank["us"].size(); ++i, ++row) {
      ASSERT_LT(row, table.rows.size());
      EXPECT_EQ(rank["numbers"][i], CellAt<int64_t>(table, row, "step"));
      EXPECT_NEAR(rank["us"][i].get<double>() * 1'000,
                  static_cast<double>(CellAt<int64_t>(table, row, "total_ns")), 501);
    }
  }
  EXPECT_EQ(row, table.rows.size());
}

TEST(RankPairs, EverybodyWaitsForTheLateRankAlone) {
  SyntheticJob job({.ranks = 4,
                    .steps = 10,
                    .transfer_ns = 20'000,
                    .syncs = false,
                    .late = {{.rank = 2, .cause = Cause::kCompute, .ns = 150'000}}});
  const Table table = TabulateRankPairs(job.run());
  ASSERT_EQ(table.rows.size(), 12u);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const bool is_for_late = CellAt<int64_t>(table, row, "other_rank") == 2;
    const int64_t waits = CellAt<int64_t>(table, row, "wait_ns");
    EXPECT_TRUE(is_for_late ? waits >= 10 * 150'000 : waits == 0) << waits;
  }
}

TEST(KeyFigures, AreThoseOfTheWaterfall) {
  SyntheticJob job({.ranks = 2, .steps = 9, .transfer_ns = 70'000});
  const Table figures = TabulateKeyFigures(job.run());
  const Table waterfall = TabulateWaterfall(job.run());
  double exposed = 0;
  for (size_t row = 0; row < waterfall.rows.size(); ++row) {
    if (CellAt<std::string>(waterfall, row, "cause").starts_with("exposed")) {
      exposed += CellAt<double>(waterfall, row, "share_percent");
    }
  }
  ASSERT_EQ(figures.rows.size(), 1u);
  EXPECT_GT(exposed, 0);
  EXPECT_NEAR(CellAt<double>(figures, 0, "exposed_comm_percent"), exposed, 0.01);
}

TEST(Page, CannotBeLeftByWhatARunIsCalled) {
  SyntheticJob job({.ranks = 1, .steps = 3});
  job.run().path = "</script><script>alert(1)</script>";
  const std::string page = FormatPage(job.run(), {});
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>"), std::string::npos);
}

}  // namespace
}  // namespace ranktap::collector
