// The shell script that measures a run's kernels with Nsight Compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "collector/export/exporters.h"
#include "tests/unit/collector/synthetic_job.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ScriptFor(const collector::Run& run, const std::string& path) {
  std::vector<const Trace*> traces;
  for (const Trace& trace : run.traces) traces.push_back(&trace);
  const auto failure = WriteNcu(run, traces, {}, path);
  EXPECT_FALSE(failure) << failure->message;
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NcuExporterTest, ACommandMeasuresTheLongKernelsOfOneStepAndNoneThatCommunicates) {
  const TemporaryDirectory directory;
  SyntheticJob job({.ranks = 2, .layers = 1, .steps = 5});
  const std::string script = ScriptFor(job.run(), directory / "x.sh");
  EXPECT_THAT(script, HasSubstr("--kernel-name 'regex:^(gemm)$'"));
  EXPECT_THAT(script, HasSubstr("--launch-count 1 "));
  EXPECT_THAT(script, HasSubstr("dram__bytes.sum"));
  EXPECT_THAT(script, HasSubstr("--log-file ncu-rank1.csv"));
  EXPECT_THAT(script, HasSubstr("launches that communicate are left out"));
  EXPECT_THAT(script, Not(HasSubstr("nccl")));
}

TEST(NcuExporterTest, NamesAndArgumentsOfTheProgramAreWordsForTheShellAndNoCommands) {
  const TemporaryDirectory directory;
  SyntheticJob job({.ranks = 1, .layers = 1, .steps = 5});
  Trace& trace = job.run().traces[0];
  const uint32_t name = trace.dictionary.AppendString("a';touch pwned;'");
  for (size_t i = 0; i < trace.kernels.size(); ++i) trace.kernels.name.Set(i, name);
  for (const char* const word :
       {"python", "train me.py", "--note=it's `touch pwned` $(touch pwned)", "\n touch pwned\n"}) {
    trace.hello.mutable_process()->add_command_line(word);
  }
  ScriptFor(job.run(), directory / "x.sh");
  std::ofstream(directory / "ncu") << "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done\n";
  const std::string at = std::string(directory.path());
  ASSERT_EQ(std::system(("cd '" + at + "' && chmod +x ncu && PATH=.:$PATH sh x.sh >said").c_str()),
            0);
  std::ifstream file(directory / "said");
  const std::string said{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(said, HasSubstr("<python><train me.py><--note=it's `touch pwned` $(touch pwned)><\n "
                              "touch pwned\n>"));
  EXPECT_FALSE(std::ifstream(directory / "pwned").good());
}

TEST(NcuExporterTest, ARunWithoutKernelsHasNothingToMeasure) {
  const TemporaryDirectory directory;
  collector::Run run;
  run.traces.emplace_back();
  const Trace* const trace = &run.traces[0];
  EXPECT_TRUE(WriteNcu(run, {&trace, 1}, {}, directory / "x.sh"));
}

}  // namespace
}  // namespace ranktap::collector
