// The program's client asks for CUPTI, gets it, and gives it back.
#include "agent/sources/cupti/cupti_client_turn.h"

#include <gtest/gtest.h>

#include <thread>

namespace ranktap::agent::cupti {
namespace {

TEST(CuptiClientTurnTest, AClientGoesOnWhenItIsServed) {
  ClientTurn turn;
  const uint32_t asked = turn.Ask("cuptiActivityEnable");
  EXPECT_STREQ(turn.wanted_by(), "cuptiActivityEnable");
  std::thread drain([&] { turn.Serve(); });
  EXPECT_TRUE(turn.Await(asked, UINT64_MAX));
  EXPECT_EQ(turn.wanted_by(), nullptr);
  drain.join();
}

TEST(CuptiClientTurnTest, AClientThatWasServedBeforeItWaitsDoesNotWait) {
  ClientTurn turn;
  const uint32_t asked = turn.Ask("cuptiActivityEnable");
  turn.Serve();
  EXPECT_TRUE(turn.Await(asked, 0));
}

TEST(CuptiClientTurnTest, AClientWhoseDeadlineHasPassedGoesOnUnserved) {
  ClientTurn turn;
  EXPECT_FALSE(turn.Await(turn.Ask("cuptiActivityEnable"), 0));
  EXPECT_STREQ(turn.wanted_by(), "cuptiActivityEnable") << "the drain still gives CUPTI up";
}

TEST(CuptiClientTurnTest, WeComeBackWhenTheClientSaysUnlessWeHaveLeftForGood) {
  ClientTurn turn;
  EXPECT_EQ(turn.ours_at_ns(), 0u);
  EXPECT_TRUE(turn.GiveBack(70));
  EXPECT_EQ(turn.ours_at_ns(), 70u);
  turn.ComeBackAt(90);
  EXPECT_EQ(turn.ours_at_ns(), 90u);
  turn.LeaveForGood();
  EXPECT_FALSE(turn.GiveBack(100));
  EXPECT_EQ(turn.ours_at_ns(), UINT64_MAX);
}

}  // namespace
}  // namespace ranktap::agent::cupti
