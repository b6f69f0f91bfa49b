#include "agent/transport/level_schedule.h"

#include <gtest/gtest.h>

namespace ranktap::agent {
namespace {

using proto::Level;

constexpr uint64_t kNow = 1'000, kReal = 1'700'000'000'000'000'000;

LevelOrder Order(Level level, uint64_t at = 0, uint64_t until = 0) {
  LevelOrder order;
  order.level = level;
  order.at_realtime_ns = at;
  order.until_realtime_ns = until;
  return order;
}

Level Due(LevelSchedule& levels, uint64_t now) {
  const auto order = levels.TakeDue(now);
  return order ? order->level : Level::kUnknown;
}

TEST(LevelScheduleTest, AnOrderWithoutAnInstantOrWithAPastOneIsDueAtOnce) {
  LevelSchedule levels;
  levels.Take(Order(Level::kKernels), kNow, kReal);
  EXPECT_EQ(Due(levels, kNow), Level::kKernels);
  levels.Take(Order(Level::kFull, kReal - 5), kNow, kReal);
  EXPECT_EQ(Due(levels, kNow), Level::kFull);
  EXPECT_EQ(Due(levels, kNow), Level::kUnknown) << "once";
  EXPECT_EQ(levels.next_ns(), LevelSchedule::kNever);
}

TEST(LevelScheduleTest, AWindowBeginsAtItsInstantAndEndsByItself) {
  LevelSchedule levels;
  levels.Take(Order(Level::kKernels, kReal + 100, kReal + 300), kNow, kReal);
  EXPECT_EQ(levels.next_ns(), kNow + 100);
  EXPECT_EQ(Due(levels, kNow + 99), Level::kUnknown);
  EXPECT_EQ(Due(levels, kNow + 100), Level::kKernels);
  EXPECT_EQ(levels.next_ns(), kNow + 300);
  EXPECT_EQ(Due(levels, kNow + 300), Level::kDormant);
}

TEST(LevelScheduleTest, OfAWindowThatIsOverOnlyItsEndIsDone) {
  LevelSchedule levels;
  levels.Take(Order(Level::kKernels, kReal - 300, kReal - 100), kNow, kReal);
  EXPECT_EQ(Due(levels, kNow), Level::kDormant);
  EXPECT_EQ(levels.next_ns(), LevelSchedule::kNever);
}

TEST(LevelScheduleTest, ANewOrderReplacesWhatIsDueLaterAndKeepsAnEndBeforeIt) {
  LevelSchedule levels;
  levels.Take(Order(Level::kKernels, 0, kReal + 100), kNow, kReal);
  EXPECT_EQ(Due(levels, kNow), Level::kKernels);
  levels.Take(Order(Level::kFull, kReal + 200), kNow, kReal);
  EXPECT_EQ(Due(levels, kNow + 100), Level::kDormant) << "the first window still ends";
  EXPECT_EQ(Due(levels, kNow + 200), Level::kFull);

  levels.Take(Order(Level::kKernels, kReal + 500, kReal + 900), kNow, kReal);
  levels.Take(Order(Level::kDormant, kReal + 400), kNow, kReal);
  EXPECT_EQ(Due(levels, kNow + 1000), Level::kDormant);
  EXPECT_EQ(levels.next_ns(), LevelSchedule::kNever) << "a stop cancels a window to come";
}

TEST(LevelScheduleTest, NoInstantOverflows) {
  LevelSchedule levels;
  levels.Take(Order(Level::kKernels, UINT64_MAX, UINT64_MAX), UINT64_MAX / 2, 0);
  EXPECT_EQ(Due(levels, UINT64_MAX / 2), Level::kUnknown);
  EXPECT_NE(levels.next_ns(), LevelSchedule::kNever);
}

}  // namespace
}  // namespace ranktap::agent
