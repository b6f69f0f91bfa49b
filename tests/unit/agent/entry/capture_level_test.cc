// The level is the process's: each test sets the one that it starts from.
#include "agent/entry/capture_level.h"

#include <gtest/gtest.h>

#include <vector>

#include "agent/core/capture_state.h"
#include "agent/sources/source.h"
#include "tests/unit/agent/core/announced.h"

namespace ranktap::agent {

using proto::Level;

namespace {

std::vector<Level>& Told() {
  static std::vector<Level> levels;
  return levels;
}

constexpr Source kSources[] = {{.name = "made up", .set_level = [](Level level, proto::GapReason) {
                                  Told().push_back(level);
                                }}};

size_t Gaps() {
  size_t gaps = 0;
  for (const Announcement& each : TakeAnnounced()) gaps += each.type == proto::FrameType::kGap;
  return gaps;
}

}  // namespace

std::span<const Source> AllSources() { return kSources; }

namespace {

class CaptureLevelTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MapCapturePage());
    OnLevelOrder({.level = Level::kKernels, .reason = "test", .is_greeting = false});
    Told().clear();
    (void)TakeAnnounced();
  }
};

TEST_F(CaptureLevelTest, EachSourceIsToldOfAnOrderAndTheLevelIsInForce) {
  OnLevelOrder({.level = Level::kFull, .reason = "start", .is_greeting = false});
  EXPECT_EQ(Told(), std::vector{Level::kFull});
  EXPECT_EQ(CurrentLevel(), Level::kFull);
  EXPECT_TRUE(Capturing(kCaptureRanges) && Capturing(kCaptureFramework));
}

TEST_F(CaptureLevelTest, BelowFullTheFrameworkIsNotCapturedAndDormantNothingIs) {
  EXPECT_TRUE(Capturing(kCaptureRanges));
  EXPECT_FALSE(Capturing(kCaptureFramework));
  OnLevelOrder({.level = Level::kDormant, .reason = "stop", .is_greeting = false});
  EXPECT_FALSE(Capturing(kCaptureRanges));
}

TEST_F(CaptureLevelTest, ATimeBelowRangesIsAGapThatIsAnnouncedOpenAndThenClosed) {
  OnLevelOrder({.level = Level::kDormant, .reason = "stop", .is_greeting = false});
  EXPECT_EQ(Gaps(), 1u);
  OnLevelOrder({.level = Level::kDormant, .reason = "stop", .is_greeting = false});
  EXPECT_EQ(Gaps(), 0u) << "the same level again";
  OnLevelOrder({.level = Level::kKernels, .reason = "start", .is_greeting = false});
  EXPECT_EQ(Gaps(), 1u);
}

// Looks at the budget for `seconds` of which hooks take a share of `busy`.
void Look(int seconds, double busy) {
  static uint64_t hook_ticks = 0;
  for (int i = 0; i < seconds; ++i) {
    CostFields cost{};
    hook_ticks += static_cast<uint64_t>(1e12 * busy);
    cost.callback_ticks = hook_ticks;
    KeepToBudget(cost);
  }
}

TEST_F(CaptureLevelTest, HooksOverTheBudgetCostOneLevelAndAGreetingDoesNotGiveItBack) {
  BeginCapture(Level::kFull, 10'000);
  Look(5, 1);
  EXPECT_EQ(CurrentLevel(), Level::kKernels);
  OnLevelOrder({.level = Level::kFull, .reason = "welcome", .is_greeting = true});
  EXPECT_EQ(CurrentLevel(), Level::kKernels);
  OnLevelOrder({.level = Level::kFull, .reason = "a user's", .is_greeting = false});
  EXPECT_EQ(CurrentLevel(), Level::kFull);
}

TEST_F(CaptureLevelTest, TheBudgetNeverTakesRangesAway) {
  BeginCapture(Level::kRanges, 10'000);
  Look(20, 1);
  EXPECT_EQ(CurrentLevel(), Level::kRanges);
}

// Last: nothing steps down in this process any more.
TEST_F(CaptureLevelTest, WhileTheProcessEndsTheBudgetTakesNothingAway) {
  StopSteppingDown();
  BeginCapture(Level::kFull, 10'000);
  Look(20, 1);
  EXPECT_EQ(CurrentLevel(), Level::kFull);
}

}  // namespace
}  // namespace ranktap::agent
