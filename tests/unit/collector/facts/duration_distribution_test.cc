// Against numpy: percentile(method='linear'), std(ddof=1).
#include "collector/facts/numbers/duration_distribution.h"

#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

TEST(DurationDistributionTest, QuantilesLieBetweenNeighboursAndTheDeviationIsOfASample) {
  DurationDistribution first, second;
  for (const int64_t ns : {10, 20, 40}) first.Add(ns);
  for (const int64_t ns : {80, 160, 1000}) second.Add(ns);
  first.Add(second);
  EXPECT_EQ(first.count, 6);
  EXPECT_EQ(first.median_ns(), 60);
  EXPECT_EQ(first.p95_ns(), 790);
  EXPECT_EQ(first.stddev_ns(), 387);  // 386.8
  EXPECT_EQ(first.QuantileNs(0), 10);
  EXPECT_EQ(first.QuantileNs(1), 1000);
}

TEST(DurationDistributionTest, OfNoneAndOfOneThereIsNoDeviation) {
  DurationDistribution times;
  EXPECT_EQ(times.median_ns(), 0);
  EXPECT_EQ(times.stddev_ns(), 0);
  times.Add(7);
  EXPECT_EQ(times.p95_ns(), 7);
  EXPECT_EQ(times.stddev_ns(), 0);
}

}  // namespace
}  // namespace ranktap::collector
