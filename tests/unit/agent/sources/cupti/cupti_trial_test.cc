// When a CUPTI on trial may be called, and what is said while it may not.
#include "agent/sources/cupti/cupti_trial.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/core/announced.h"

namespace ranktap::agent::cupti {
namespace {

using proto::TrialOutcome;

constexpr uint64_t kTrialSecond = 1'000'000'000;

class CuptiTrialTest : public testing::Test {
 protected:
  void SetUp() override { (void)TakeAnnounced(); }

  std::vector<std::string> NotesAt(uint64_t now_ns) {
    EXPECT_FALSE(trial_.HasPassed(now_ns, "libcupti.so"));
    return TakeNotes();
  }

  Trial trial_;
};

TEST_F(CuptiTrialTest, ACuptiThatNobodyDoubtsMayBeCalled) {
  EXPECT_TRUE(trial_.may_call());
  EXPECT_TRUE(NotesAt(0).empty());
}

TEST_F(CuptiTrialTest, OneOnTrialMayBeCalledOnceTheCollectorHasSurvivedIt) {
  trial_.Ask({}, 0);
  EXPECT_FALSE(trial_.may_call());
  trial_.Take(TrialOutcome::kAlive);
  EXPECT_FALSE(trial_.may_call()) << "its tables are not made yet";
  EXPECT_TRUE(trial_.HasPassed(0, "libcupti.so"));
  EXPECT_TRUE(trial_.may_call());
  EXPECT_FALSE(trial_.HasPassed(0, "libcupti.so")) << "they are made once";
}

TEST_F(CuptiTrialTest, ADeathIsNotedOnceAndALaterCollectorMayKnowBetter) {
  trial_.Ask({}, 0);
  trial_.Take(TrialOutcome::kDied);
  const std::vector<std::string> notes = NotesAt(1);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("it has ended a process that tried it"), std::string::npos) << notes[0];
  EXPECT_TRUE(NotesAt(2).empty());
  trial_.Take(TrialOutcome::kAlive);
  EXPECT_TRUE(trial_.HasPassed(3, "libcupti.so"));
}

TEST_F(CuptiTrialTest, SilenceIsNotedAfterAMinuteAndNotBefore) {
  trial_.Ask({}, 5 * kTrialSecond);
  (void)TakeAnnounced();
  EXPECT_TRUE(NotesAt(65 * kTrialSecond).empty());
  EXPECT_EQ(NotesAt(65 * kTrialSecond + 1).size(), 1u);
}

}  // namespace
}  // namespace ranktap::agent::cupti
