#include "agent/core/overhead_budget.h"

#include <gtest/gtest.h>

namespace ranktap::agent {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Looks once a second at hooks that take `ppm` of each; the look at which the limit was exceeded.
int FirstExceeded(OverheadBudget& budget, uint32_t ppm, int looks) {
  for (int i = 1; i <= looks; ++i) {
    const auto n = static_cast<uint64_t>(i);
    if (budget.IsExceeded(n * kSecond / 1'000'000 * ppm, n * kSecond)) return i;
  }
  return 0;
}

TEST(OverheadBudgetTest, IsExceededAfterThreeSecondsOverTheLimit) {
  OverheadBudget budget;
  budget.SetLimit(20'000);
  EXPECT_EQ(FirstExceeded(budget, 30'000, 100), 4) << "the first look only begins";
  EXPECT_EQ(budget.share_ppm(), 30'000u);
}

TEST(OverheadBudgetTest, StaysQuietBelowTheLimitAndWithoutOne) {
  OverheadBudget budget;
  EXPECT_EQ(FirstExceeded(budget, 900'000, 100), 0);
  budget.SetLimit(20'000);
  EXPECT_EQ(FirstExceeded(budget, 20'000, 100), 0) << "the limit itself is allowed";
}

TEST(OverheadBudgetTest, OneOrTwoBadSecondsAreForgiven) {
  OverheadBudget budget;
  budget.SetLimit(20'000);
  uint64_t spent = 0;
  for (uint64_t i = 1; i < 100; ++i) {
    if (i % 3 != 0) spent += kSecond / 2;
    EXPECT_FALSE(budget.IsExceeded(spent, i * kSecond)) << i;
  }
}

TEST(OverheadBudgetTest, BeginsAnewAfterAVerdictAndAfterAChange) {
  OverheadBudget budget;
  budget.SetLimit(20'000);
  ASSERT_EQ(FirstExceeded(budget, 30'000, 100), 4);
  EXPECT_FALSE(budget.IsExceeded(5 * kSecond, 5 * kSecond));
  EXPECT_FALSE(budget.IsExceeded(6 * kSecond, 6 * kSecond));
  budget.Restart();
  EXPECT_FALSE(budget.IsExceeded(7 * kSecond, 7 * kSecond));
  EXPECT_FALSE(budget.IsExceeded(8 * kSecond, 8 * kSecond));
}

}  // namespace
}  // namespace ranktap::agent
