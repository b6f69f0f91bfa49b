// Which files and runs a command's words mean, and what it writes where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "collector/cli/command.h"
#include "collector/file/json.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/later_runs.h"
#include "tests/unit/collector/cli/called_command.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A directory of its own is the working directory.
class RunPlaces : public testing::Test {
 protected:
  RunPlaces() : before_(fs::current_path()) {
    std::string pattern = testing::TempDir() + "/places.XXXXXX";
    scratch_ = mkdtemp(pattern.data());
    fs::current_path(scratch_);
  }
  ~RunPlaces() override {
    fs::current_path(before_);
    fs::remove_all(scratch_);
  }
  // torch.profiler's, of a rank with one kernel.
  static void WriteTrace(const std::string& path, int rank) {
    fs::create_directories(fs::absolute(path).parent_path());
    std::ofstream(path) << R"({"distributedInfo": {"rank": )" << rank << R"(}, "traceEvents": [
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
       "ts": 10, "dur": 2, "args": {"correlation": 1}},
      {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 5,
       "args": {"correlation": 1, "device": 0, "stream": 7}}]})";
  }

 private:
  fs::path before_, scratch_;
};

TEST_F(RunPlaces, AWordThatNamesAnAnalysisIsOneThoughAFileIsCalledSo) {
  WriteTrace("trace.json", 0);
  fs::create_directory("kernels");
  const CalledCommand ended = Call(&ReportCommand, {"trace.json", "kernels"});
  EXPECT_EQ(ended.status, kSuccess) << ended.complained;
  EXPECT_THAT(ended.said, HasSubstr("gemm"));
  WriteTrace("ranks/trace.json", 0);
  EXPECT_THAT(Call(&ReportCommand, {"ranks", "kernels"}).said, HasSubstr("gemm"));
}

TEST_F(RunPlaces, TheSummaryInJsonIsAllItsTablesAndInCsvNone) {
  WriteTrace("trace.json", 0);
  const Json all = ParseJson(Call(&ReportCommand, {"trace.json", "--format", "json"}).said);
  ASSERT_TRUE(all.is_array());
  std::vector<std::string> names;
  for (const auto& table : all) names.push_back(table.TextOf("name"));
  EXPECT_THAT(names, testing::ElementsAre("verdict", "ranks", "waterfall", "kernels"));
  const CalledCommand csv = Call(&ReportCommand, {"trace.json", "--format", "csv"});
  EXPECT_EQ(csv.status, kWrongUsage);
  EXPECT_THAT(csv.complained, HasSubstr("name one report"));
}

TEST_F(RunPlaces, ADirectoryOfRunsIsToldWithTheRunsInIt) {
  for (const char* run : {"0/run-1", "0/run-2", "1000/run-3"}) {
    WriteTrace(std::string(run) + "/trace.json", 0);
  }
  const CalledCommand ended = Call(&ReportCommand, {"."});
  EXPECT_EQ(ended.status, kFailure);
  EXPECT_THAT(ended.complained,
              HasSubstr("3 directories below have some: name one of ./0/run-1, ./0/run-2, "
                        "./1000/run-3"));
}

TEST_F(RunPlaces, OfARunThatWasUsedAgainTheLastIsTaken) {
  fs::create_directories("runs/ranktap-train-20261122-101500");
  EXPECT_EQ(LastRunIn("runs"), "runs");
  std::ofstream("runs/ranktap-train-20261122-101500/run.json") << "{}";
  EXPECT_EQ(LastRunIn("runs"), "runs") << "a directory of runs is no run";
  std::ofstream("runs/run.json") << "{}";
  EXPECT_EQ(LastRunIn("runs"), "runs/ranktap-train-20261122-101500");
  fs::create_directories("runs/ranktap-a-20261123-101500");
  std::ofstream("runs/ranktap-a-20261123-101500/run.json") << "{}";
  EXPECT_EQ(LastRunIn("runs"), "runs/ranktap-a-20261123-101500") << "by its time, not its name";
  EXPECT_EQ(LastRunIn("runs/."), "runs/.");
  WriteTrace("runs/trace.json", 0);
  WriteTrace("runs/ranktap-a-20261123-101500/trace.json", 0);
  EXPECT_THAT(Call(&ReportCommand, {"runs", "kernels"}).complained,
              HasSubstr("this is its last run, runs/ranktap-a-20261123-101500"));
}

TEST_F(RunPlaces, SeveralRanksMakeADirectoryOfTheFilesNameWithoutItsEnding) {
  WriteTrace("job/rank0.json", 0);
  WriteTrace("job/rank1.json", 1);
  const CalledCommand ended = Call(&ExportCommand, {"job", "--format", "chrome", "-o", "all.json"});
  EXPECT_EQ(ended.status, kSuccess) << ended.complained;
  EXPECT_EQ(ended.said, "all/rank0.pt.trace.json\nall/rank1.pt.trace.json\n");
  EXPECT_FALSE(fs::exists("all.json"));
  for (const char* output : {"all.pt.trace.json", "all"}) {
    EXPECT_EQ(Call(&ExportCommand, {"job", "-o", output}).said, ended.said);
  }
}

TEST_F(RunPlaces, AProcessWithoutARankThatIsAloneIsRankZero) {
  const char* const text = R"({"traceEvents": [
      {"ph": "X", "cat": "user_annotation", "name": "step", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})";
  std::ofstream("alone.json") << text;
  EXPECT_EQ(Call(&ReportCommand, {"alone.json", "ranges", "--ranks", "0"}).status, kSuccess);
  EXPECT_THAT(Call(&ReportCommand, {"alone.json", "ranges", "--ranks", "1"}).complained,
              HasSubstr("no rank of the run is among 1"));
}

TEST_F(RunPlaces, AnExportOfNoStacksFailsAndWritesNoFile) {
  std::ofstream("empty.json") << R"({"traceEvents": [
      {"ph": "X", "cat": "user_annotation", "name": "step", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})";
  const CalledCommand ended =
      Call(&ExportCommand, {"empty.json", "--format", "folded", "-o", "stacks.folded"});
  EXPECT_EQ(ended.status, kFailure) << ended.said;
  EXPECT_THAT(ended.complained, HasSubstr("no stacks in it"));
  EXPECT_FALSE(fs::exists("stacks.folded"));
}

}  // namespace
}  // namespace ranktap::collector
