// Which collector a dump without a name is of, and how often a run saves one by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/cli/control.h"
#include "collector/cli/dump_triggers.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMinute = 60'000'000'000;

CollectorAnswer Answer(const std::string& socket, const std::vector<std::string>& jobs,
                       bool keeps) {
  CollectorAnswer answer{socket, {}};
  for (const std::string& job : jobs) {
    v1::ProcessStatus* const process = answer.reply.add_processes();
    process->set_job(job);
    if (keeps) process->set_kept_ns(0);
  }
  return answer;
}

TEST(DumpTest, WithoutANameACollectorThatIsIdleOrKeepsEverythingIsNoCandidate) {
  const auto found = ThoseThatKeep(
      {Answer("idle", {}, false), Answer("whole", {"a"}, false), Answer("kept", {"b"}, true)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].socket, "kept");
  EXPECT_FALSE(IsAmbiguous({}, found));
}

TEST(DumpTest, OfSeveralJobsThatAreKeptOneIsToBeNamed) {
  const auto found = ThoseThatKeep({Answer("one", {"a"}, true), Answer("two", {"b"}, true)});
  ASSERT_EQ(found.size(), 2u);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(IsAmbiguous({}, found));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("(a, b); name a job\n"));
}

TEST(DumpTest, WhereNobodyKeepsAllAreAskedSoThatTheirAnswerSaysWhatIsMissing) {
  EXPECT_EQ(ThoseThatKeep({Answer("idle", {}, false), Answer("whole", {"a"}, false)}).size(), 2u);
}

TEST(DumpLimitsTest, ARunHasTenMinutesBetweenTwoAndTheOtherRunsDoNotCount) {
  DumpLimits limits;
  EXPECT_EQ(limits.Take("run", 5), "");
  EXPECT_THAT(limits.Take("run", 5 + 10 * kMinute - 1), HasSubstr("in the ten minutes after"));
  EXPECT_EQ(limits.Take("other", 6), "");
  EXPECT_EQ(limits.Take("run", 5 + 10 * kMinute), "") << "one that was held back does not count";
}

TEST(DumpLimitsTest, ARunHasTenInAll) {
  DumpLimits limits;
  uint64_t now = 1;
  for (int i = 0; i < 10; ++i, now += 10 * kMinute) EXPECT_EQ(limits.Take("run", now), "");
  EXPECT_THAT(limits.Take("run", now + 1000 * kMinute), HasSubstr("after the tenth"));
}

TEST(DumpLimitsTest, AStandingCollectorGoesOnAfterThousandsOfRuns) {
  DumpLimits limits;
  for (int run = 0; run < 10'000; ++run) {
    EXPECT_EQ(limits.Take(std::to_string(run), static_cast<uint64_t>(run) * kMinute), "");
  }
}

}  // namespace
}  // namespace ranktap::collector
