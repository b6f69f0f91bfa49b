// Whose connections may begin a frame while half frames take a user's share.
#include "collector/ingest/net/frame_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uid_t kUser = 1000, kOther = 1001;
constexpr uint64_t kMost = FrameTurns::kMostHalfBytes;

class FrameTurnsTest : public ::testing::Test {
 protected:
  void Hold(uint64_t bytes) {
    turns_.Update(kUser, bytes, held_, false);
    held_ = bytes;
  }
  void Pass(uint64_t ns) {
    now_ns_ += ns;
    (void)loop_.RunOnce(0);
  }

  uint64_t now_ns_ = 0, held_ = 0;
  std::set<uint64_t> gone_;
  std::vector<uint64_t> begun_;
  EventLoop loop_{[this] { return now_ns_; }};
  FrameTurns turns_{&loop_, [this](uint64_t id) {
                      if (gone_.contains(id)) return false;
                      begun_.push_back(id);
                      return true;
                    }};
};

TEST_F(FrameTurnsTest, NobodyWaitsBelowTheBoundAndAnotherUserNever) {
  EXPECT_FALSE(turns_.MustWait(kUser));
  Hold(kMost - 1);
  EXPECT_FALSE(turns_.MustWait(kUser));
  Hold(kMost);
  EXPECT_TRUE(turns_.MustWait(kUser));
  EXPECT_FALSE(turns_.MustWait(kOther));
}

TEST_F(FrameTurnsTest, ThoseWhoWaitHaveTheirTurnInOrderAsHalfFramesBecomeWhole) {
  Hold(kMost);
  for (const uint64_t id : {7, 8, 9}) turns_.Wait(kUser, id);
  gone_ = {7};
  Hold(kMost - 1);
  EXPECT_THAT(begun_, ElementsAre(8));
  EXPECT_TRUE(turns_.MustWait(kUser)) << "the turn that was given may bring a frame";
  turns_.Update(kUser, 0, 0, true);
  EXPECT_THAT(begun_, ElementsAre(8, 9));
}

TEST_F(FrameTurnsTest, SendersThatStopInHalfAFrameHoldUpTheOthersForAMomentOnly) {
  Hold(kMost);
  for (const uint64_t id : {7, 8}) turns_.Wait(kUser, id);
  Pass(FrameTurns::kPatienceNs / 2);
  Hold(kMost + 1);
  Pass(FrameTurns::kPatienceNs / 2);
  EXPECT_THAT(begun_, IsEmpty()) << "one of them has moved";
  Pass(FrameTurns::kPatienceNs);
  EXPECT_THAT(begun_, ElementsAre(7, 8));
}

}  // namespace
}  // namespace ranktap::collector
