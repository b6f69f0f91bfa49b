// Which collector a dump without a name is of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/cli/control.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace ranktap::collector
