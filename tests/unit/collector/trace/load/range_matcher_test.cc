#include "collector/trace/load/range_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;

class RangeMatcherTest : public ::testing::Test {
 protected:
  struct Push {
    int64_t time;
    uint16_t domain = 0;
  };
  struct Pop {
    uint64_t time;
    uint16_t domain = 0;
  };

  uint32_t AddRow(int64_t time, uint16_t writer, uint16_t domain) {
    ranges_.start.push_back(time);
    ranges_.end.push_back(time);
    ranges_.name.push_back(1);
    ranges_.domain.push_back(domain);
    ranges_.writer.push_back(writer);
    ranges_.depth.push_back(0);
    ranges_.kind.push_back(0);
    return static_cast<uint32_t>(ranges_.size() - 1);
  }
  void Frame(uint16_t writer, std::vector<Push> pushes, std::vector<Pop> pops,
             bool events_missing = false) {
    const size_t first_push = ranges_.size(), first_pop = matcher_.pops().time.size();
    for (const Push& push : pushes) AddRow(push.time, writer, push.domain);
    for (const Pop& pop : pops) {
      matcher_.pops().time.push_back(pop.time);
      matcher_.pops().domain.push_back(pop.domain);
    }
    matcher_.EndFrame(writer, first_push, pushes.size(), first_pop, events_missing);
  }
  std::vector<int64_t> Ends() { return {ranges_.end.begin(), ranges_.end.end()}; }
  std::vector<int> Depths() { return {ranges_.depth.begin(), ranges_.depth.end()}; }
  std::vector<int> Unfinished() {
    std::vector<int> flags;
    for (size_t i = 0; i < ranges_.size(); ++i) flags.push_back(ranges_.unfinished.At(i));
    return flags;
  }

  Ranges ranges_;
  RangeMatcher matcher_{&ranges_};
};

TEST_F(RangeMatcherTest, APopEndsTheInnermostPushOfItsWriterAndDomain) {
  Frame(0, {{10}, {20}, {30, 5}}, {{40}, {50, 5}, {60}});
  Frame(1, {{15}}, {{45}});
  matcher_.Match(100);
  EXPECT_THAT(Ends(), ElementsAre(60, 40, 50, 45));
  EXPECT_THAT(Depths(), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(Unfinished(), ElementsAre(0, 0, 0, 0));
}

TEST_F(RangeMatcherTest, RangesGoOnOverFrames) {
  Frame(0, {{10}}, {});
  Frame(0, {{20}}, {{25}});
  Frame(0, {}, {{30}});
  matcher_.Match(100);
  EXPECT_THAT(Ends(), ElementsAre(30, 25));
}

TEST_F(RangeMatcherTest, WhatIsOpenAtTheEndIsMarked) {
  Frame(0, {{10}, {20}}, {{30}});
  matcher_.Match(99);
  EXPECT_THAT(Ends(), ElementsAre(99, 30));
  EXPECT_THAT(Unfinished(), ElementsAre(1, 0));
}

TEST_F(RangeMatcherTest, APopOfARangeFromBeforeTheTraceIsCounted) {
  Frame(0, {{20}}, {{10}, {30}});
  matcher_.Match(99);
  EXPECT_THAT(Ends(), ElementsAre(30));
  EXPECT_EQ(matcher_.unmatched_pops(), 1u);
}

// A lost pop must not give its push the next one's end.
TEST_F(RangeMatcherTest, LostEventsEndWhatWasOpen) {
  Frame(0, {{10}, {20}}, {});
  Frame(0, {{50}}, {{60}, {70}}, /*events_missing=*/true);
  matcher_.Match(99);
  EXPECT_THAT(Ends(), ElementsAre(20, 20, 60));
  EXPECT_THAT(Unfinished(), ElementsAre(1, 1, 0));
  EXPECT_EQ(matcher_.unmatched_pops(), 1u);
}

TEST_F(RangeMatcherTest, AGapEndsWhatWasOpen) {
  matcher_.AddGap(40);
  Frame(0, {{10}, {20}, {80}}, {{30}, {90}});
  matcher_.Match(99);
  EXPECT_THAT(Ends(), ElementsAre(40, 30, 90));
  EXPECT_THAT(Unfinished(), ElementsAre(1, 0, 0));
}

TEST_F(RangeMatcherTest, AtOneTickAPopComesFirstWhenThereIsSomethingToPop) {
  Frame(0, {{10}, {20}}, {{20}, {30}});
  Frame(1, {{20}}, {{20}});
  matcher_.Match(99);
  EXPECT_THAT(Ends(), ElementsAre(20, 30, 20));
}

TEST_F(RangeMatcherTest, StartsFindTheirEndsByIdFromAnyWriterInAnyOrder) {
  matcher_.AddEnd(8, 70, 3);
  matcher_.AddStart(7, AddRow(10, 0, 0));
  matcher_.AddStart(8, AddRow(20, 0, 0));
  matcher_.AddEnd(9, 50, 0);
  matcher_.Match(99);
  EXPECT_THAT(Ends(), ElementsAre(99, 70));
  EXPECT_THAT(Unfinished(), ElementsAre(1, 0));
  EXPECT_EQ(ranges_.inline_payload.At(1), 3u);
  EXPECT_EQ(matcher_.unmatched_pops(), 1u);
}

TEST_F(RangeMatcherTest, APayloadAtThePopCountsWhereThePushHadNone) {
  ranges_.inline_payload.push_back(0);
  Frame(0, {{10}, {20}}, {{30}, {40}});
  matcher_.pops().inline_payload.push_back(11);
  matcher_.pops().inline_payload.push_back(12);
  ranges_.inline_payload.push_back(99);
  matcher_.Match(99);
  EXPECT_EQ(ranges_.inline_payload.At(0), 12u);
  EXPECT_EQ(ranges_.inline_payload.At(1), 99u);
}

TEST_F(RangeMatcherTest, WhatARefusedFrameAddedIsTakenBack) {
  const auto before = matcher_.position();
  matcher_.AddStart(1, AddRow(10, 0, 0));
  matcher_.AddEnd(1, 20, 0);
  matcher_.pops().time.push_back(5);
  matcher_.pops().domain.push_back(0);
  matcher_.Rewind(before);
  ranges_.start.Truncate(0);
  ranges_.end.Truncate(0);
  matcher_.Match(99);
  EXPECT_EQ(matcher_.unmatched_pops(), 0u);
}

}  // namespace
}  // namespace ranktap::collector
