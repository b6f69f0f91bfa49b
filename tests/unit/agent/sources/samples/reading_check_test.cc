#include "agent/sources/samples/reading_check.h"

#include <gtest/gtest.h>

namespace ranktap::agent::samples {
namespace {

TEST(ReadingCheckTest, AProcessWhoseThreadsAreNotItsOwnIsRefused) {
  ReadingCheck check;
  for (int i = 0; i < 199; ++i) check.AddThread(i % 3 == 0);
  EXPECT_EQ(check.TakeVerdict(), "");  // few say nothing yet
  check.AddThread(false);
  EXPECT_EQ(check.TakeVerdict(), "its threads are not where its version has them");
}

TEST(ReadingCheckTest, AProcessWhoseStacksAreMostlyTornIsRefused) {
  ReadingCheck check;
  for (int i = 0; i < 200; ++i) check.AddThread(true), check.AddStack(i % 3 != 0);
  EXPECT_EQ(check.TakeVerdict(), "most of those read made no sense");
}

TEST(ReadingCheckTest, AFewTornStacksAndThreadsThatEndAreNone) {
  ReadingCheck check;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 300; ++i) check.AddThread(i % 4 != 0), check.AddStack(i % 4 == 0);
    EXPECT_EQ(check.TakeVerdict(), "");
  }
}

}  // namespace
}  // namespace ranktap::agent::samples
