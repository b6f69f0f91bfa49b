// Options that would do nothing are wrong usage, and the message names where they do something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "collector/cli/command.h"
#include "collector/terminal/complain.h"
#include "tests/unit/collector/cli/called_command.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;

TEST(RefusalsTest, AnOptionThatTheReportDoesNotHeedIsRefusedWithTheNamesOfThoseThatDo) {
  const CalledCommand ended = Call(&ReportCommand, {"RUN", "kernels", "--operator", "x"});
  EXPECT_EQ(ended.status, kWrongUsage);
  EXPECT_THAT(ended.complained, HasSubstr("--operator is for pace, patterns, not for kernels"));
}

TEST(RefusalsTest, WithoutANameAnOptionThatNoTableOfTheSummaryHeedsIsRefused) {
  const CalledCommand ended = Call(&ReportCommand, {"RUN", "--sample-rate", "3"});
  EXPECT_EQ(ended.status, kWrongUsage);
  EXPECT_THAT(ended.complained, HasSubstr("--sample-rate is for memory-over-time"));
}

TEST(RefusalsTest, AFormatsOptionIsRefusedForOtherFormats) {
  const CalledCommand ended =
      Call(&ExportCommand, {"RUN", "--format", "csv", "-o", "x.csv", "--arrows", "tensors"});
  EXPECT_EQ(ended.status, kWrongUsage);
  EXPECT_THAT(ended.complained, HasSubstr("--arrows is for chrome, perfetto, not for csv"));
}

// A name in a run's directory, its run.json or a trace may hold what a terminal obeys.
TEST(StartHelp, SaysThatAScheduleMayLeaveAWindowWithoutOperators) {
  const CalledCommand ended = Call(&StartCommand, {"--help"});
  EXPECT_EQ(ended.status, kSuccess);
  EXPECT_THAT(ended.said, HasSubstr("run --schedule counts steps from the begin of the window"));
}

TEST(TerminalTest, NothingThatAFileBroughtReachesItRaw) {
  std::string directory = testing::TempDir() + "run-\x1b]0;x\x07-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  std::ofstream(directory + "/a\x1b[2J\nranktap: ok.trace") << "no trace";
  for (const CalledCommand& ended :
       {Call(&VerifyCommand, {directory}), Call(&ReportCommand, {directory}),
        Call(&VerifyCommand, {directory + "/none"}),
        Call(&StatusCommand, {"--socket", directory + "/none"})}) {
    const std::string all = ended.said + ended.complained;
    EXPECT_FALSE(all.empty());
    EXPECT_EQ(all.find('\x1b'), std::string::npos) << all;
    EXPECT_EQ(all.find("\nranktap: ok"), std::string::npos) << all;
  }
  std::filesystem::remove_all(directory);
}

TEST(RefusalsTest, HelpForAReportListsItsColumnsWithTheirUnitsAndMeanings) {
  const CalledCommand ended = Call(&ReportCommand, {"--help", "kernels"});
  EXPECT_EQ(ended.status, kSuccess);
  EXPECT_THAT(ended.said, testing::ContainsRegex("total_ns +ns +The durations, added up"));
  EXPECT_THAT(ended.said,
              testing::ContainsRegex("ranks +count +.where there is room. The number of ranks"));
  EXPECT_THAT(ended.said, HasSubstr("Option: --hta-compat"));
}

}  // namespace
}  // namespace ranktap::collector
