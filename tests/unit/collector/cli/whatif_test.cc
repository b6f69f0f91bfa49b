// `ranktap whatif` on recorded runs: what it answers, and in one line why it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
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
using testing::Not;
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

// The host's step lasts from 100 to 200 us. Its kernel runs from 140 to 260, and the one that was
// launched before the recording until 130 or, behind a gap, until 90: the step which the table of
// steps has too.
TEST(WhatIfCommandTest, AStepIsThatOfTheTableOfSteps) {
  for (const auto& [before, step] : {std::pair{"70", "130.0 us"}, std::pair{"30", "160.0 us"}}) {
    const TemporaryDirectory directory;
    const std::string file = directory.path() + "/rank0.json";
    std::ofstream(file) << R"trace({"traceEvents": [
      {"ph": "X", "cat": "kernel", "name": "before", "pid": 0, "tid": 7, "ts": 60, "dur": )trace"
                        << before << R"trace(,
       "args": {"device": 0, "stream": 7, "correlation": 1}},
      {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1,
       "ts": 100, "dur": 100},
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
       "ts": 120, "dur": 25, "args": {"correlation": 2}},
      {"ph": "X", "cat": "kernel", "name": "void at::gemm<float>(float*)", "pid": 0, "tid": 7,
       "ts": 140, "dur": 120, "args": {"device": 0, "stream": 7, "correlation": 2}}]})trace";
    const Told told = Ask(file, {});
    EXPECT_EQ(told.status, kSuccess) << told.complained;
    EXPECT_THAT(told.said, StartsWith(std::string("A step takes ") + step + " (1 step)."));
    EXPECT_THAT(told.said, HasSubstr("gemm<float> x0.5"));
    EXPECT_THAT(told.said, Not(HasSubstr("table of steps")));
    EXPECT_EQ(Ask(file, {"--kernel", "gem*", "x1"}).status, kSuccess) << "by its own name";
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

TEST(WhatIfCommandTest, ARunThatLacksARankIsRefusedInOneLine) {
  const TemporaryDirectory directory;
  const std::string run = directory.path() + "/run";
  std::filesystem::copy(kRecorded + "torch-ddp", run);
  std::filesystem::remove(run + "/rank-00001.trace");
  ExpectOneLine(Ask(run, {}), kFailure, "rank-00001.trace: named in run.json, and missing");
}

TEST(WhatIfCommandTest, ARunOfWhichATraceIsCutOffIsRefusedInOneLine) {
  const TemporaryDirectory directory;
  const std::string run = directory.path() + "/run";
  std::filesystem::copy(kRecorded + "torch-ddp", run);
  const std::string file = run + "/rank-00001.trace";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) * 6 / 10);
  ExpectOneLine(Ask(run, {}), kFailure, "rank-00001.trace is cut off or damaged at offset ");
}

TEST(WhatIfCommandTest, ATraceThatHasNoStepsIsRefusedInOneLine) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/rank0.json";
  std::ofstream(file) << R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 5}]})";
  ExpectOneLine(Ask(file, {}), kFailure, "the run has no steps after its warm-up");
}

}  // namespace
}  // namespace ranktap::collector
