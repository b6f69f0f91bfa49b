#include "collector/report/steps/run_diff.h"
#include "collector/report/reports.h"

#include <gtest/gtest.h>

#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

TEST(MannWhitneyTest, GivesThePValuesOfScipy) {
  // scipy.stats.mannwhitneyu(a, b, method='asymptotic').pvalue
  EXPECT_NEAR(MannWhitney({1, 2, 3, 4, 5, 6}, {4, 5, 6, 7, 8, 9}), 0.03637858, 1e-6);
  // Without ties exact, as scipy's method="auto".
  EXPECT_NEAR(MannWhitney({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}), 2 / 252.0, 1e-12);
  EXPECT_NEAR(MannWhitney({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}), 2 / 252.0, 1e-12);
  EXPECT_NEAR(MannWhitney({1, 3, 5, 7, 9}, {2, 4, 6, 8, 10, 12}), 0.42857142857142855, 1e-9);
  EXPECT_NEAR(MannWhitney({1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 11, 12, 13, 14, 15, 16, 17, 18}),
              0.0004122948020616911, 1e-9);
  EXPECT_NEAR(MannWhitney({5, 5, 5}, {5, 5, 5}), 1, 1e-12);
}

TEST(Diff, WhatWasMadeSlowerIsFoundWithItsAmountAndIsSignificant) {
  JobShape shape{.ranks = 2, .seed = 1, .steps = 30, .jitter_ns = 5'000};
  SyntheticJob before(shape);
  shape.seed = 2;
  shape.compute_ns += 20'000;
  SyntheticJob after(shape);
  const Table table = TabulateDiff(before.run(), after.run());
  EXPECT_EQ(CellAt<std::string>(table, 0, "kind"), "step");
  EXPECT_EQ(CellAt<std::string>(table, 0, "significant"), "yes");
  const size_t gemm = RowWith<std::string>(table, "name", "gemm");
  EXPECT_NEAR(static_cast<double>(CellAt<int64_t>(table, gemm, "diff_ns")), 3 * 20'000, 2'000);
  EXPECT_EQ(CellAt<std::string>(table, gemm, "significant"), "yes");
  EXPECT_DOUBLE_EQ(CellAt<double>(table, gemm, "before_calls"), 3);
}

TEST(Diff, OfTheSameJobWithOtherNoiseIsNotSignificant) {
  SyntheticJob before({.seed = 1, .steps = 30, .jitter_ns = 50'000});
  SyntheticJob after({.seed = 2, .steps = 30, .jitter_ns = 50'000});
  const Table table = TabulateDiff(before.run(), after.run());
  const size_t gemm = RowWith<std::string>(table, "name", "gemm");
  EXPECT_EQ(CellAt<std::string>(table, gemm, "significant"), "no");
}

TEST(Diff, WithoutStepsThereIsNoTest) {
  SyntheticJob before({}), after({});
  for (collector::Run* const run : {&before.run(), &after.run()}) {
    for (Trace& trace : run->traces) {
      trace.ranges = Ranges();
      trace.kernels = Kernels();
    }
  }
  const Table table = TabulateDiff(before.run(), after.run());
  EXPECT_TRUE(
      std::holds_alternative<std::monostate>(table.rows[0][ColumnNamed(table, "significant")]));
}

}  // namespace
}  // namespace ranktap::collector
