#include "collector/trace/clock_map.h"

#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(ClockMapTest, WithoutReadingsTimesStayAsTheyAre) {
  EXPECT_EQ(ClockMap().Map(12345), 12345);
  EXPECT_EQ(ClockMap({}, Steps::kNever).Map(12345), 12345);
}

TEST(ClockMapTest, ATscIsMappedPiecewiseBetweenItsReadings) {
  // 3 GHz at first, then 1 % slower, as between two readings of a drifting clock.
  const ClockMap map(
      {{1'000, 0}, {1'000 + 3'000'000'000, kSecond}, {1'000 + 5'970'000'000, 2 * kSecond}},
      Steps::kNever);
  EXPECT_EQ(map.Map(1'000), 0);
  EXPECT_EQ(map.Map(1'000 + 1'500'000'000), kSecond / 2);
  EXPECT_EQ(map.Map(1'000 + 3'000'000'000), kSecond);
  EXPECT_EQ(map.Map(1'000 + 3'000'000'000 + 1'485'000'000), kSecond + kSecond / 2);
  EXPECT_NEAR(map.ns_per_tick(), 1 / 2.97, 1e-6);
}

TEST(ClockMapTest, BeyondItsReadingsTheNearestLineGoesOn) {
  const ClockMap map({{10'000'000'000, kSecond}, {13'000'000'000, 2 * kSecond}}, Steps::kNever);
  EXPECT_EQ(map.Map(7'000'000'000), 0);
  EXPECT_EQ(map.Map(16'000'000'000), 3 * kSecond);
}

TEST(ClockMapTest, ReadingsInAnyOrderGiveTheSameMap) {
  const ClockMap map({{13'000'000'000, 2 * kSecond}, {10'000'000'000, kSecond}}, Steps::kNever);
  EXPECT_EQ(map.Map(11'500'000'000), kSecond + kSecond / 2);
}

TEST(ClockMapTest, OneReadingOfRealtimeIsEnough) {
  const ClockMap map({{1'700'000'000'000'000'000, 5 * kSecond}}, Steps::kPossible);
  EXPECT_EQ(map.Map(1'700'000'000'000'000'123), 5 * kSecond + 123);
}

// Two readings a microsecond apart with 100 ns of error would bend the line by a tenth.
TEST(ClockMapTest, ReadingsCloseTogetherDoNotBendTheLine) {
  const ClockMap map({{1'700'000'000'000'000'000, 0}, {1'700'000'000'000'001'100, 1'000}},
                     Steps::kPossible);
  EXPECT_EQ(map.Map(1'700'000'001'000'000'000), kSecond);
}

TEST(ClockMapTest, SlewingIsFollowed) {
  // NTP slews by 500 ppm.
  const uint64_t base = 1'700'000'000'000'000'000;
  const ClockMap map({{base, 0}, {base + 1'000'500'000, kSecond}}, Steps::kPossible);
  EXPECT_TRUE(map.steps().empty());
  EXPECT_EQ(map.Map(base + 500'250'000), kSecond / 2);
}

TEST(ClockMapTest, AForwardStepMovesNothingBeforeIt) {
  const uint64_t base = 1'700'000'000'000'000'000;
  // One second of real time, then the clock jumps by ten.
  const ClockMap map({{base, 0}, {base + kSecond, kSecond}, {base + 12 * kSecond, 2 * kSecond}},
                     Steps::kPossible);
  ASSERT_EQ(map.steps().size(), 1u);
  EXPECT_EQ(map.steps()[0], 10 * kSecond);
  EXPECT_EQ(map.Map(base + kSecond + 300'000'000), kSecond + 300'000'000) << "before the step";
  EXPECT_EQ(map.Map(base + 12 * kSecond - 200'000'000), 2 * kSecond - 200'000'000) << "after it";
  EXPECT_EQ(map.Map(base + 12 * kSecond + 5), 2 * kSecond + 5);
}

TEST(ClockMapTest, AfterABackwardStepTheLaterReadingCounts) {
  const uint64_t base = 1'700'000'000'000'000'000;
  const ClockMap map({{base, 0}, {base + kSecond, kSecond}, {base + kSecond / 2, 2 * kSecond}},
                     Steps::kPossible);
  ASSERT_EQ(map.steps().size(), 1u);
  EXPECT_EQ(map.Map(base + kSecond / 2 + 7), 2 * kSecond + 7);
  EXPECT_EQ(map.Map(base + 1000), 1000);
}

TEST(ClockMapTest, AHintFromAnyOtherValueChangesNothing) {
  const ClockMap map({{0, 0}, {1'000'000'000, kSecond}, {3'000'000'000, 2 * kSecond}},
                     Steps::kNever);
  ClockMap::Line line = map.LineOf(0);
  for (const uint64_t ticks : {5ull, 2'500'000'000ull, 7ull, 1'000'000'000ull, 999'999'999ull}) {
    EXPECT_EQ(map.Map(ticks, &line), map.Map(ticks)) << ticks;
  }
}

}  // namespace
}  // namespace ranktap::collector
