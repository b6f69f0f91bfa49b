// `ranktap whatif` on recorded runs: what it answers, and in one line why it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collector/cli/command.h"
#include "collector/terminal/complain.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kRecorded = RANKTAP_DOCS "/../tests/golden/inputs/";

struct Told {
  int status;
  std::string said, complained;
};
Told Ask(const std::string& run, std::vector<std::string> change) {
  change.insert(change.begin(), run);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = WhatIfCommand(change);
  std::fflush(stdout);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

void ExpectOneLine(const Told& told, int status, const std::string& part) {
  EXPECT_EQ(told.status, status);
  EXPECT_EQ(told.said, "");
  EXPECT_THAT(told.complained, HasSubstr(part));
  EXPECT_EQ(std::ranges::count(told.complained, '\n'), 1) << told.complained;
}

TEST(WhatIfCommandTest, EachRecordedRunOfTheStandInIsReplayedWithinTheBounds) {
  for (const char* const name : {"standin-full", "standin-kernels", "standin-ranges",
                                 "standin-symbols", "standin-windows", "torch-ddp"}) {
    const Told told = Ask(kRecorded + name, {"--format", "json"});
    ASSERT_EQ(told.status, kSuccess) << name << ": " << told.complained;
    const nlohmann::json answer = nlohmann::json::parse(told.said);
    EXPECT_LE(answer["identity"]["median_percent"], 1) << name;
    EXPECT_LE(answer["identity"]["p95_percent"], 3) << name;
    EXPECT_EQ(answer["identity"]["violated"], 0) << name;
    EXPECT_LE(answer["identity"]["kept_gap_percent"], 10) << name;
  }
}

TEST(WhatIfCommandTest, AnAnswerHasTheStepItsBoundsWhatIsThenCriticalAndTheFourFigures) {
  const Told told = Ask(kRecorded + "standin-full", {"--host", "x1"});
  EXPECT_EQ(told.status, kSuccess) << told.complained;
  EXPECT_THAT(told.said, StartsWith("With the host's time x1 a step takes "));
  for (const char* const part :
       {", between ", "  then critical: ", " off at the median and ", " at p95, a start ",
        " edges contradict the trace; ", " of the devices' idle time is kept as it was"}) {
    EXPECT_THAT(told.said, HasSubstr(part));
  }
}

TEST(WhatIfCommandTest, WhatTheRunDoesNotHaveIsOneLineAndStatusOne) {
  const std::string run = kRecorded + "standin-full";
  ExpectOneLine(Ask(run, {"--kernel", "nope*", "x0"}), kFailure, "no kernel matches 'nope*'");
  ExpectOneLine(Ask(run, {"--module", "nope", "x0"}), kFailure, "no module");
  ExpectOneLine(Ask(run, {"--rank", "99", "as", "median"}), kFailure, "the run has no rank 99");
  ExpectOneLine(Ask(run, {"--line", "train.py:1", "x0"}), kFailure, "--sample 10ms");
  ExpectOneLine(Ask("no-such-run", {}), kFailure, "no-such-run");
}

TEST(WhatIfCommandTest, AChangeWithoutAFactorIsWrongUsage) {
  const std::string run = kRecorded + "standin-full";
  for (const std::vector<std::string>& change : {std::vector<std::string>{"--module", "blocks"},
                                                 {"--host", "0.5"},
                                                 {"--comm", "x-1"},
                                                 {"--line", "train.py:3", "xyz"},
                                                 {"--rank", "1"}}) {
    EXPECT_EQ(Ask(run, change).status, kWrongUsage) << change[0];
  }
}

TEST(WhatIfCommandTest, ATraceThatIsCutOffOrHasNoStepsIsRefusedInOneLine) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/rank0.json";
  std::ofstream(file) << R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 5}]})";
  ExpectOneLine(Ask(file, {}), kFailure, "the run has no steps after its warm-up");
}

}  // namespace
}  // namespace ranktap::collector
