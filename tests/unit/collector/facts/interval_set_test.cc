// Lengths of sets of moments that are never made.
#include "collector/facts/numbers/interval_set.h"

#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

const std::vector<Interval> kThreeSteps = {{10, 20}, {30, 40}, {50, 60}};

TEST(IntervalSet, TheLengthInBothIsThatOfTheIntersection) {
  const std::vector<Interval> other = {{0, 12}, {15, 35}, {38, 55}, {70, 80}};
  EXPECT_EQ(LengthInBoth(kThreeSteps, other), Length(Intersection(kThreeSteps, other)));
  EXPECT_EQ(LengthInBoth(kThreeSteps, other), 2 + 5 + 5 + 2 + 5);
  EXPECT_EQ(LengthInBoth(kThreeSteps, {}), 0);
}

TEST(IntervalSet, TheLengthWithinGoesOnFromWhereItWasAskedLast) {
  size_t at = 0;
  EXPECT_EQ(LengthWithin(kThreeSteps, 0, 5, &at), 0);
  EXPECT_EQ(LengthWithin(kThreeSteps, 5, 35, &at), 10 + 5);
  EXPECT_EQ(LengthWithin(kThreeSteps, 15, 16, &at), 1);
  EXPECT_EQ(LengthWithin(kThreeSteps, 45, 30, &at), 0);
  EXPECT_EQ(LengthWithin(kThreeSteps, 55, 100, &at), 5);
}

}  // namespace
}  // namespace ranktap::collector
