// Which level a run has at an instant, and what a process that joins then has yet to hear.
#include "collector/ingest/control/level_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace ranktap::collector {
namespace {

using ::testing::HasSubstr;
using Request = v1::ControlRequest;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kNow = 1000 * kSecond;
constexpr uint64_t kBegin = kNow + 10 * kSecond;
constexpr uint64_t kEnd = kBegin + 5 * kSecond;

Request Make(Request::Verb verb, uint64_t at_ns = 0, uint64_t duration_ns = 0) {
  Request request;
  request.set_verb(verb);
  request.set_at_realtime_ns(at_ns);
  request.set_duration_ns(duration_ns);
  return request;
}

v1::LevelChange WindowOf(v1::Level level, uint64_t begin, uint64_t end) {
  v1::LevelChange change;
  change.set_level(level);
  change.set_at_realtime_ns(begin);
  change.set_until_realtime_ns(end);
  return change;
}

class LevelPlansTest : public ::testing::Test {
 protected:
  // As of `ranktap collect --dormant`: a start means kernels.
  LevelPlans plans_{v1::LEVEL_DORMANT, v1::LEVEL_KERNELS};
};

TEST_F(LevelPlansTest, BeforeAnyOrderEveryRunHasTheCollectorsLevel) {
  EXPECT_EQ(plans_.LevelAt("", kNow), v1::LEVEL_DORMANT);
  EXPECT_EQ(plans_.LevelAt("/runs/a", kNow), v1::LEVEL_DORMANT);
  EXPECT_EQ(plans_.Ahead("/runs/a", kNow), nullptr);
  EXPECT_EQ(plans_.OwnOrder("/runs/a"), nullptr);
}

TEST_F(LevelPlansTest, AWindowBeginsAndEndsAtItsInstants) {
  plans_.Order("", WindowOf(v1::LEVEL_KERNELS, kBegin, kEnd), kNow);
  EXPECT_EQ(plans_.LevelAt("", kBegin - 1), v1::LEVEL_DORMANT);
  EXPECT_EQ(plans_.LevelAt("", kBegin), v1::LEVEL_KERNELS);
  EXPECT_EQ(plans_.LevelAt("", kEnd - 1), v1::LEVEL_KERNELS);
  EXPECT_EQ(plans_.LevelAt("", kEnd), v1::LEVEL_DORMANT);
}

TEST_F(LevelPlansTest, AWindowEndsAtTheLevelThatItsOrderNames) {
  v1::LevelChange change = WindowOf(v1::LEVEL_FULL, kBegin, kEnd);
  change.set_level_after(v1::LEVEL_RANGES);
  plans_.Order("", change, kNow);
  EXPECT_EQ(plans_.LevelAt("", kEnd), v1::LEVEL_RANGES);
}

TEST_F(LevelPlansTest, AProcessThatJoinsInAWindowGetsWhatIsLeftOfIt) {
  plans_.Order("", WindowOf(v1::LEVEL_KERNELS, kBegin, kEnd), kNow);
  for (const uint64_t when : {kNow, kBegin, kEnd - 1}) {
    const v1::LevelChange* const ahead = plans_.Ahead("/runs/a", when);
    ASSERT_NE(ahead, nullptr);
    EXPECT_EQ(ahead->at_realtime_ns(), kBegin);
    EXPECT_EQ(ahead->until_realtime_ns(), kEnd);
  }
  EXPECT_EQ(plans_.Ahead("/runs/a", kEnd), nullptr) << "the window is over";
}

TEST_F(LevelPlansTest, AChangeWithoutAnEndIsNothingToHearOfOnceItHasBegun) {
  plans_.Order("", WindowOf(v1::LEVEL_KERNELS, kBegin, 0), kNow);
  EXPECT_NE(plans_.Ahead("", kBegin - 1), nullptr);
  EXPECT_EQ(plans_.Ahead("", kBegin), nullptr);
  EXPECT_EQ(plans_.LevelAt("", UINT64_MAX), v1::LEVEL_KERNELS);
}

TEST_F(LevelPlansTest, ALaterOrderReplacesTheWindowThatIsOpen) {
  plans_.Order("", WindowOf(v1::LEVEL_KERNELS, kBegin, kEnd), kNow);
  plans_.Order("", WindowOf(v1::LEVEL_RANGES, kBegin + 3, 0), kBegin + 1);
  EXPECT_EQ(plans_.LevelAt("", kBegin + 2), v1::LEVEL_KERNELS) << "until the new one begins";
  EXPECT_EQ(plans_.LevelAt("", kBegin + 3), v1::LEVEL_RANGES);
  EXPECT_EQ(plans_.LevelAt("", kEnd), v1::LEVEL_RANGES) << "the replaced window has no end to come";
}

TEST_F(LevelPlansTest, AnOrderForARunDoesNotReachAnother) {
  plans_.Order("/runs/a", WindowOf(v1::LEVEL_KERNELS, kBegin, kEnd), kNow);
  EXPECT_EQ(plans_.LevelAt("/runs/a", kBegin), v1::LEVEL_KERNELS);
  EXPECT_EQ(plans_.LevelAt("/runs/b", kBegin), v1::LEVEL_DORMANT);
  EXPECT_EQ(plans_.LevelAt("", kBegin), v1::LEVEL_DORMANT);
  EXPECT_EQ(plans_.Ahead("/runs/b", kNow), nullptr);
}

TEST_F(LevelPlansTest, AnOrderForAllReplacesThoseOfSingleRuns) {
  plans_.Order("/runs/a", WindowOf(v1::LEVEL_KERNELS, kBegin, kEnd), kNow);
  ASSERT_NE(plans_.OwnOrder("/runs/a"), nullptr);
  plans_.Order("", WindowOf(v1::LEVEL_RANGES, kBegin, kEnd), kNow);
  EXPECT_EQ(plans_.OwnOrder("/runs/a"), nullptr);
  EXPECT_EQ(plans_.LevelAt("/runs/a", kBegin), v1::LEVEL_RANGES);
}

TEST_F(LevelPlansTest, ARunsOwnOrderGoesBeforeThatOfAll) {
  plans_.Order("", WindowOf(v1::LEVEL_RANGES, kBegin, kEnd), kNow);
  plans_.Order("/runs/a", WindowOf(v1::LEVEL_KERNELS, kBegin, kEnd), kNow);
  EXPECT_EQ(plans_.LevelAt("/runs/a", kBegin), v1::LEVEL_KERNELS);
  EXPECT_EQ(plans_.LevelAt("/runs/b", kBegin), v1::LEVEL_RANGES);
}

TEST_F(LevelPlansTest, AStartBeginsSoonUnlessItNamesALaterInstant) {
  const uint64_t soonest = kNow + LevelPlans::kLeadNs;
  EXPECT_EQ(plans_.ChangeFor(Make(Request::VERB_START), kNow)->at_realtime_ns(), soonest);
  EXPECT_EQ(plans_.ChangeFor(Make(Request::VERB_START, kNow - 1), kNow)->at_realtime_ns(), soonest);
  const auto later = plans_.ChangeFor(Make(Request::VERB_START, kBegin, 5 * kSecond), kNow);
  EXPECT_EQ(later->at_realtime_ns(), kBegin);
  EXPECT_EQ(later->until_realtime_ns(), kEnd);
}

TEST_F(LevelPlansTest, AWindowThatIsTooLongForTheClockHasNoEnd) {
  const auto change = plans_.ChangeFor(Make(Request::VERB_START, kBegin, UINT64_MAX), kNow);
  EXPECT_EQ(change->until_realtime_ns(), UINT64_MAX);
}

TEST_F(LevelPlansTest, AStartOpensTheNextWindowAndAStopEndsTheLast) {
  EXPECT_EQ(plans_.ChangeFor(Make(Request::VERB_START), kNow)->window(), 1u);
  const auto stop = plans_.ChangeFor(Make(Request::VERB_STOP, 0, kSecond), kNow);
  EXPECT_EQ(stop->window(), 1u);
  EXPECT_EQ(stop->level(), v1::LEVEL_DORMANT);
  EXPECT_EQ(stop->until_realtime_ns(), 0u) << "a stop holds until the next order";
  EXPECT_EQ(plans_.ChangeFor(Make(Request::VERB_START), kNow)->window(), 2u);
}

TEST_F(LevelPlansTest, AStartIsAtTheLevelItNamesOrAtTheCollectors) {
  EXPECT_EQ(plans_.ChangeFor(Make(Request::VERB_START), kNow)->level(), v1::LEVEL_KERNELS);
  Request request = Make(Request::VERB_START);
  request.set_level(v1::LEVEL_FULL);
  EXPECT_EQ(plans_.ChangeFor(request, kNow)->level(), v1::LEVEL_FULL);
}

TEST_F(LevelPlansTest, ARequestThatMakesNoSenseIsRefusedAndOpensNoWindow) {
  EXPECT_THAT(plans_.ChangeFor(Make(Request::VERB_UNKNOWN), kNow).message(), HasSubstr("newer"));
  Request request = Make(Request::VERB_START);
  request.set_level(v1::LEVEL_DORMANT);
  EXPECT_THAT(plans_.ChangeFor(request, kNow).message(), HasSubstr("no level to start at"));
  EXPECT_EQ(plans_.ChangeFor(Make(Request::VERB_START), kNow)->window(), 1u);
}

TEST_F(LevelPlansTest, PlansOfRunsThatHaveEndedAreForgottenButForTheLastOnes) {
  const v1::LevelChange change = *plans_.ChangeFor(Make(Request::VERB_START), kNow);
  const auto name = [](size_t run) { return "run-" + std::to_string(run); };
  plans_.Order("goes on", change, kNow);
  plans_.Order("came back", change, kNow);
  plans_.RunEnded("came back");
  plans_.RunBegan("came back");
  for (size_t run = 0; run < 1000; ++run) {
    plans_.Order(name(run), change, kNow);
    plans_.RunEnded(name(run));
  }
  for (size_t run = 0; run < 1000; ++run) {
    EXPECT_EQ(plans_.OwnOrder(name(run)) != nullptr, run >= 1000 - LevelPlans::kMostEnded) << run;
  }
  EXPECT_NE(plans_.OwnOrder("goes on"), nullptr);
  EXPECT_NE(plans_.OwnOrder("came back"), nullptr);
}

TEST_F(LevelPlansTest, WhatIsAskedForIsNotOrderedYet) {
  ASSERT_TRUE(plans_.ChangeFor(Make(Request::VERB_START, kBegin), kNow).ok());
  EXPECT_EQ(plans_.LevelAt("", kBegin), v1::LEVEL_DORMANT);
}

}  // namespace
}  // namespace ranktap::collector
