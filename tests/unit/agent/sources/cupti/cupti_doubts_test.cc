// What makes us doubt CUPTI, and that each doubt is noted once.
#include "agent/sources/cupti/cupti_doubts.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/core/announced.h"

namespace ranktap::agent::cupti {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class CuptiDoubtsTest : public testing::Test {
 protected:
  void SetUp() override { (void)TakeAnnounced(); }

  Doubts doubts_;
};

TEST_F(CuptiDoubtsTest, ATimeIsPossibleFromAMinuteBeforeTheStartToAMinuteFromNow) {
  doubts_.Begin({.realtime_ns = 1'000 * kSecond, .monotonic_ns = 10 * kSecond});
  const TimeBounds bounds =
      doubts_.PossibleTimes({.realtime_ns = 1'005 * kSecond, .monotonic_ns = 15 * kSecond});
  EXPECT_EQ(bounds.first_ns, 940 * kSecond);
  EXPECT_EQ(bounds.last_ns, 1'065 * kSecond);
}

TEST_F(CuptiDoubtsTest, TimesOfTheClockBeforeAndAfterSomebodySetItArePossible) {
  doubts_.Begin({.realtime_ns = 1'000 * kSecond, .monotonic_ns = 10 * kSecond});
  const TimeBounds back =
      doubts_.PossibleTimes({.realtime_ns = 505 * kSecond, .monotonic_ns = 15 * kSecond});
  EXPECT_EQ(back.first_ns, 440 * kSecond);
  EXPECT_EQ(back.last_ns, 1'065 * kSecond);
  const TimeBounds forth =
      doubts_.PossibleTimes({.realtime_ns = 2'005 * kSecond, .monotonic_ns = 15 * kSecond});
  EXPECT_EQ(forth.first_ns, 940 * kSecond);
  EXPECT_EQ(forth.last_ns, 2'065 * kSecond);
}

TEST_F(CuptiDoubtsTest, ImpossibleTimesAreNotedOnceAndNoneAreNot) {
  doubts_.NoteImpossibleTimes(0);
  EXPECT_TRUE(TakeNotes().empty());
  doubts_.NoteImpossibleTimes(1);
  doubts_.NoteImpossibleTimes(2);
  EXPECT_EQ(TakeNotes().size(), 1u);
}

TEST_F(CuptiDoubtsTest, ManyUntimedWorksAreNotedOnceWithTheOptionThatHelps) {
  doubts_.NoteUntimed(99, 16);
  EXPECT_TRUE(TakeNotes().empty());
  doubts_.NoteUntimed(1, 16);
  doubts_.NoteUntimed(1000, 16);
  const std::vector<std::string> notes = TakeNotes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("RANKTAP_DEVICE_BUFFERS"), std::string::npos) << notes[0];
}

TEST_F(CuptiDoubtsTest, ASessionWhoseGraphsLeftNoRecordIsNotedOnce) {
  doubts_.NoteSilentGraphs(/*launches=*/0, /*records=*/0);
  doubts_.NoteSilentGraphs(3, 1);
  EXPECT_TRUE(TakeNotes().empty()) << "one came";
  doubts_.NoteSilentGraphs(3, 1);
  EXPECT_TRUE(TakeNotes().empty()) << "none was launched";
  doubts_.NoteSilentGraphs(8, 1);
  doubts_.NoteSilentGraphs(9, 1);
  const std::vector<std::string> notes = TakeNotes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("for 5 launches of CUDA graphs"), std::string::npos) << notes[0];
}

TEST_F(CuptiDoubtsTest, WrongGraphIdsAreNotedOnceWhereTheVersionGivesThem) {
  doubts_.NoteWrongGraphIds(FeaturesOf(kVersion129));
  EXPECT_TRUE(TakeNotes().empty());
  doubts_.NoteWrongGraphIds(FeaturesOf(kVersion130));
  doubts_.NoteWrongGraphIds(FeaturesOf(kVersion130));
  EXPECT_EQ(TakeNotes().size(), 1u);
}

TEST_F(CuptiDoubtsTest, MissingCallbacksAreNotedOnce) {
  doubts_.NoteMissingCallbacks();
  doubts_.NoteMissingCallbacks();
  EXPECT_EQ(TakeNotes().size(), 1u);
}

TEST_F(CuptiDoubtsTest, TenSecondsOfLaunchesWithoutAKernelAreNotedOnce) {
  doubts_.WatchForRecords(0, true, /*kernels=*/5, /*launches=*/5);
  doubts_.WatchForRecords(1 * kSecond, true, 5, 8);
  doubts_.WatchForRecords(10 * kSecond - 1, true, 5, 8);
  EXPECT_TRUE(TakeNotes().empty());
  doubts_.WatchForRecords(10 * kSecond, true, 5, 8);
  doubts_.WatchForRecords(30 * kSecond, true, 5, 9);
  const std::vector<std::string> notes = TakeNotes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("though 3 were launched"), std::string::npos) << notes[0];
}

TEST_F(CuptiDoubtsTest, AKernelThatComesOrATimeWithoutCaptureBeginsTheWaitAnew) {
  doubts_.WatchForRecords(0, true, 5, 6);
  doubts_.WatchForRecords(9 * kSecond, true, 6, 9);
  doubts_.WatchForRecords(18 * kSecond, true, 6, 10);
  doubts_.WatchForRecords(19 * kSecond, /*is_armed=*/false, 6, 10);
  doubts_.WatchForRecords(28 * kSecond, true, 6, 12);
  EXPECT_TRUE(TakeNotes().empty());
}

TEST_F(CuptiDoubtsTest, OneLongKernelIsNoSilenceWhileNothingMoreIsLaunched) {
  doubts_.WatchForRecords(0, true, 5, 6);
  doubts_.WatchForRecords(60 * kSecond, true, 5, 6);
  EXPECT_TRUE(TakeNotes().empty());
}

}  // namespace
}  // namespace ranktap::agent::cupti
