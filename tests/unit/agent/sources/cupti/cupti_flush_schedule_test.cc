// When CUPTI is asked for its records.
#include "agent/sources/cupti/cupti_flush_schedule.h"

#include <gtest/gtest.h>

namespace ranktap::agent::cupti {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

TEST(CuptiFlushScheduleTest, AFlushFollowsTheLastByTheIntervalOfTheConfiguration) {
  FlushSchedule flush;
  flush.Begin(/*now_ns=*/100, /*every_ns=*/10, /*is_slow=*/false);
  EXPECT_EQ(flush.at_ns(), 110u);
  flush.Next(/*now_ns=*/150);
  EXPECT_EQ(flush.at_ns(), 160u);
}

TEST(CuptiFlushScheduleTest, ACuptiThatSlowsDownIsAskedEveryFiveSecondsAtMost) {
  FlushSchedule flush;
  flush.Begin(0, 1 * kSecondNs, /*is_slow=*/true);
  EXPECT_EQ(flush.at_ns(), 5 * kSecondNs);
  flush.Begin(0, 7 * kSecondNs, /*is_slow=*/true);
  EXPECT_EQ(flush.at_ns(), 7 * kSecondNs);
}

TEST(CuptiFlushScheduleTest, OneThatIsSlowedDownLaterIsSlowFromItsNextFlushOn) {
  FlushSchedule flush;
  flush.Begin(0, 1 * kSecondNs, /*is_slow=*/false);
  flush.SlowDown();
  EXPECT_EQ(flush.at_ns(), 1 * kSecondNs);
  flush.Next(1 * kSecondNs);
  EXPECT_EQ(flush.at_ns(), 6 * kSecondNs);
}

TEST(CuptiFlushScheduleTest, APostponedFlushNeverComesEarlier) {
  FlushSchedule flush;
  flush.Begin(100, 10, false);
  flush.NotBefore(105);
  EXPECT_EQ(flush.at_ns(), 110u);
  flush.NotBefore(120);
  EXPECT_EQ(flush.at_ns(), 120u);
}

}  // namespace
}  // namespace ranktap::agent::cupti
