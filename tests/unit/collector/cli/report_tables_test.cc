// What --sort, grouping, a narrow terminal and a pipe do to a table, as its reader sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "collector/cli/command.h"
#include "collector/terminal/complain.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Operator(const std::string& name, int ts, int dur, const std::string& shape) {
  return R"({"ph":"X","cat":"cpu_op","name":")" + name + R"(","pid":1,"tid":1,"ts":)" +
         std::to_string(ts) + R"(,"dur":)" + std::to_string(dur) + R"(,"args":{"Input Dims":[)" +
         shape + R"(],"Input type":["float","float"]}})";
}

const std::string kLongName = "aten::" + std::string(80, 'x') + "_the_end";

class ReportTables : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(directory_ / "t.json")
        << R"({"traceEvents":[)" << Operator("aten::mm", 1, 10, "[400,800],[800,20000]") << ","
        << Operator("aten::mm", 20, 30, "[4,8],[8,4]") << ","
        << Operator("aten::relu", 60, 35, "[4,8]") << "," << Operator(kLongName, 100, 1, "[2]")
        << "]}";
  }
  void TearDown() override { ::unsetenv("COLUMNS"); }

  int Report(std::vector<std::string> options) {
    std::vector<std::string> arguments = {directory_ / "t.json", "ops"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = ReportCommand(arguments);
    std::fflush(stdout);
    said_ = testing::internal::GetCapturedStdout();
    complained_ = testing::internal::GetCapturedStderr();
    return status;
  }
  // The first cells of a CSV's rows.
  std::vector<std::string> NamesBy(const std::string& key) {
    EXPECT_EQ(Report({"--format", "csv", "--sort", key}), kSuccess) << complained_;
    std::vector<std::string> names;
    std::istringstream lines(said_);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      line.erase(0, line.find(',') + 1);  // the rank
      names.push_back(line.substr(0, line.find(',')));
    }
    return names;
  }
  size_t LongestLine() const {
    std::istringstream lines(said_);
    size_t longest = 0;
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    return longest;
  }

  TemporaryDirectory directory_;
  std::string said_, complained_;
};

TEST_F(ReportTables, OperatorsAreSortedByAnyColumnAndByTorchsKeys) {
  const std::vector<std::string> by_time = {"aten::mm", "aten::relu", kLongName};
  for (const char* const key : {"self_cpu_ns", "self cpu", "self_cpu_time_total", "calls", "flops",
                                "cpu_total_ns", "count"}) {
    EXPECT_EQ(NamesBy(key), by_time) << key;
  }
  for (const char* const key : {"cpu_avg_ns", "cpu_time"}) {
    EXPECT_EQ(NamesBy(key)[0], "aten::relu") << key;  // 35 us a call, mm 20
  }
  EXPECT_EQ(NamesBy("-self_cpu_ns")[0], kLongName);
  for (const char* const key : {"self_device_memory_usage", "self_cuda_memory_usage"}) {
    EXPECT_EQ(NamesBy(key).size(), 3u) << key;
  }
}

TEST_F(ReportTables, SeveralTablesShowTenRowsEachAsTextAndAllOtherwise) {
  std::ofstream file(directory_ / "t.json");
  file << R"({"traceEvents":[)";
  for (int i = 0; i < 12; ++i) {
    file << (i > 0 ? "," : "") << Operator("aten::op" + std::to_string(i), 10 * i, 5, "[2]");
  }
  file << "]}";
  file.close();
  const auto rows = [this] {
    size_t count = 0;
    for (size_t at = 0; (at = said_.find("aten::op", at)) != said_.npos; ++at) ++count;
    return count;
  };
  ASSERT_EQ(Report({"steps"}), kSuccess) << complained_;
  EXPECT_EQ(rows(), 10u);
  EXPECT_THAT(said_, HasSubstr("... and 2 more"));
  ASSERT_EQ(Report({"steps", "--limit", "0"}), kSuccess) << complained_;
  EXPECT_EQ(rows(), 12u);
  ASSERT_EQ(Report({"steps", "--format", "json"}), kSuccess) << complained_;
  EXPECT_EQ(rows(), 12u);
}

TEST_F(ReportTables, AColumnThatIsNoneIsAnErrorThatNamesThoseThatAre) {
  EXPECT_EQ(Report({"--sort", "nonsense"}), kWrongUsage);
  EXPECT_THAT(complained_, HasSubstr("no column 'nonsense' in ops; it has rank, name, self_cpu"));
  EXPECT_EQ(said_, "");
}

TEST_F(ReportTables, TheColumnThatIsSortedOrGroupedByIsShownWhereThereIsNoRoomForOthers) {
  ::setenv("COLUMNS", "80", 1);
  ASSERT_EQ(Report({}), kSuccess);
  EXPECT_THAT(said_, Not(HasSubstr("input shapes")));
  ASSERT_EQ(Report({"--group-by-shape"}), kSuccess);
  EXPECT_THAT(said_, HasSubstr("input shapes"));
  ASSERT_EQ(Report({"--group-by-module"}), kSuccess);
  EXPECT_THAT(said_, HasSubstr("module"));
  ::setenv("COLUMNS", "100", 1);
  for (const char* const key : {"self_cuda_memory_usage", "self_cuda_mem_bytes"}) {
    ASSERT_EQ(Report({"--sort", key}), kSuccess);
    EXPECT_THAT(said_, HasSubstr("self cuda mem"));
  }
}

TEST_F(ReportTables, ColumnsOfNothingButZerosAreNotShownUnlessSomebodyAsksForThem) {
  ASSERT_EQ(Report({}), kSuccess);
  EXPECT_THAT(said_, Not(HasSubstr("self cuda")));
  EXPECT_THAT(said_, HasSubstr("self cpu"));
  ASSERT_EQ(Report({"--sort", "self_cuda_ns"}), kSuccess);
  EXPECT_THAT(said_, HasSubstr("self cuda"));
  ASSERT_EQ(Report({"--format", "csv"}), kSuccess);
  EXPECT_THAT(said_, HasSubstr("self_cuda_ns"));
}

TEST_F(ReportTables, NamesInAPipeAreCutInTheirMiddleAndWholeWhereAskedFor) {
  ASSERT_EQ(Report({}), kSuccess);
  EXPECT_THAT(said_, Not(HasSubstr(kLongName)));
  EXPECT_THAT(said_, HasSubstr("xxx...xxx"));
  EXPECT_THAT(said_, HasSubstr("_the_end"));
  const size_t cut = LongestLine();
  ASSERT_EQ(Report({"--full-names"}), kSuccess);
  EXPECT_THAT(said_, HasSubstr(kLongName));
  EXPECT_EQ(LongestLine(), cut + kLongName.size() - 55);
  for (const char* const format : {"json", "csv", "html"}) {
    ASSERT_EQ(Report({"--format", format}), kSuccess);
    EXPECT_THAT(said_, HasSubstr(kLongName)) << format;
  }
}

TEST_F(ReportTables, AHeaderAndTheWidthsOfShapesAndSourcesAreForText) {
  ASSERT_EQ(Report({"--group-by-shape", "--header", "Model A", "--max-shapes-width", "20"}),
            kSuccess);
  EXPECT_THAT(said_, testing::StartsWith("Model A\nOperators, as torch's key_averages()\n"));
  EXPECT_THAT(said_, HasSubstr("400x800, 800x20000"));
  EXPECT_THAT(said_, HasSubstr("4x8, 8x4"));
  EXPECT_EQ(Report({"--format", "csv", "--max-src-width", "20"}), kWrongUsage);
  EXPECT_THAT(complained_, HasSubstr("--max-src-width and --max-shapes-width are for text"));
}

TEST_F(ReportTables, NotesAndFlopsAreReadableNumbers) {
  ASSERT_EQ(Report({}), kSuccess);
  EXPECT_THAT(said_, HasSubstr("self CPU time total 76.00 us\n"));
  EXPECT_THAT(said_, HasSubstr("12.80 G"));  // 2 x 400 x 800 x 20000 and 256
  EXPECT_THAT(said_, Not(HasSubstr("12,800,000,256")));
  ASSERT_EQ(Report({"--format", "json"}), kSuccess);
  EXPECT_THAT(said_, HasSubstr("12800000256"));
}

TEST_F(ReportTables, ATimeAndItsShareHaveHeadingsOfTheirOwn) {
  ASSERT_EQ(Report({}), kSuccess);
  EXPECT_THAT(said_, HasSubstr("self cpu %  self cpu"));
  EXPECT_EQ(NamesBy("self cpu %")[0], "aten::mm");
}

// A line of a table's rows, or of its CSV.
std::string LineOf(const std::string& text, size_t number) {
  std::istringstream lines(text);
  std::string line;
  for (size_t i = 0; i <= number; ++i) std::getline(lines, line);
  return line;
}

TEST_F(ReportTables, ColumnsAreChosenAndOrderedByEitherOfTheirNames) {
  const std::vector<std::string> chosen = {"--columns", "calls,self cpu %,name", "--columns",
                                           "self_cuda_ns,calls"};
  const auto in = [&](std::vector<std::string> more) {
    more.insert(more.end(), chosen.begin(), chosen.end());
    EXPECT_EQ(Report(more), kSuccess) << complained_;
    return said_;
  };
  EXPECT_EQ(LineOf(in({}), 1), "  calls  self cpu  name" + std::string(53, ' ') + "self cuda");
  const std::string csv = in({"--format", "csv", "--sort", "cpu_avg_ns"});  // that is not shown
  EXPECT_EQ(LineOf(csv, 0), "calls,self_cpu_percent,name,self_cuda_ns");
  EXPECT_THAT(LineOf(csv, 1), HasSubstr(",aten::relu,0"));
  EXPECT_THAT(in({"--format", "json"}), Not(HasSubstr("self_cpu_ns")));
  EXPECT_THAT(said_, HasSubstr("\"calls\": 2,\n   \"self_cpu_percent\": "));
  EXPECT_THAT(in({"--format", "html"}), HasSubstr("<th>calls</th><th>self cpu</th><th class"));
}

TEST_F(ReportTables, AChosenColumnThatIsNoneIsAnErrorThatNamesThoseThatAre) {
  EXPECT_EQ(Report({"--columns", "name,nonsense"}), kWrongUsage);
  EXPECT_THAT(complained_, HasSubstr("no column 'nonsense' in ops; it has rank, name, self_cpu"));
  EXPECT_EQ(said_, "");
}

TEST_F(ReportTables, TimesAreInOneUnitThatTheHeadingNamesWhereOneIsAskedFor) {
  const auto in = [&](const std::string& unit, const std::string& format) {
    EXPECT_EQ(Report({"--columns", "name,self_cpu_ns,cpu_avg_ns", "--time-unit", unit, "--format",
                      format}),
              kSuccess)
        << complained_;
    return said_;
  };
  EXPECT_EQ(LineOf(in("us", "csv"), 0), "name,self_cpu_us,cpu_avg_us");
  EXPECT_EQ(LineOf(said_, 1), "aten::mm,40.000,20.000");
  EXPECT_EQ(LineOf(in("ns", "csv"), 1), "aten::mm,40000,20000");
  EXPECT_EQ(LineOf(in("s", "csv"), 1), "aten::mm,0.000040000,0.000020000");
  EXPECT_EQ(LineOf(in("auto", "csv"), 0), "name,self_cpu_ns,cpu_avg_ns");
  EXPECT_THAT(LineOf(in("ms", "text"), 1), HasSubstr("  self cpu (ms)  cpu avg (ms)"));
  EXPECT_THAT(LineOf(said_, 2), HasSubstr("       0.040000      0.020000"));
  EXPECT_THAT(in("ns", "text"), HasSubstr("       40,000 "));
  EXPECT_THAT(in("us", "html"), HasSubstr("<th>self cpu (us)</th>"));
  EXPECT_THAT(said_, HasSubstr("<td>40.000</td>"));
  EXPECT_THAT(in("ns", "json"), HasSubstr("\"self_cpu_ns\": 40000"));
  EXPECT_EQ(Report({"--time-unit", "us", "--format", "json"}), kWrongUsage);
  EXPECT_THAT(complained_, HasSubstr("times in json are ns"));
}

TEST_F(ReportTables, AWidthThatIsGivenCountsInAPipeAndBeforeThatOfTheTerminal) {
  ::setenv("COLUMNS", "200", 1);
  for (const size_t width : {80, 110, 160}) {
    ASSERT_EQ(Report({"--width", std::to_string(width)}), kSuccess);
    EXPECT_LE(LongestLine(), width);
    EXPECT_GT(LongestLine(), width - 40);
  }
  ASSERT_EQ(Report({"--width", "0"}), kSuccess);
  const std::string widest = said_;
  EXPECT_THAT(widest, HasSubstr(kLongName));
  ASSERT_EQ(Report({"--full-names"}), kSuccess);
  EXPECT_EQ(said_, widest);
  EXPECT_EQ(Report({"--width", "39"}), kWrongUsage);
}

// 24 characters, which names were cut to while there was any column to show, tell no two kernels
// apart.
TEST_F(ReportTables, ANameKeepsFortyCharactersBeforeColumnsOfDetailAreShown) {
  for (const char* const width : {"80", "110"}) {
    ASSERT_EQ(Report({"--width", width}), kSuccess);
    const size_t from = said_.find("aten::xxx");
    ASSERT_NE(from, said_.npos);
    EXPECT_GE(said_.find("_the_end") + 8 - from, 40u) << width;
  }
}

TEST_F(ReportTables, RowsOfSeveralRanksSayWhoseTheyAreAlsoWhereThereIsNoRoom) {
  ASSERT_EQ(Report({"--width", "60"}), kSuccess);
  EXPECT_THAT(LineOf(said_, 1), Not(HasSubstr("rank")));
  for (const int rank : {0, 1}) {
    const std::string name = "r" + std::to_string(rank) + ".json";
    std::ofstream(directory_ / name)
        << R"({"distributedInfo":{"rank": )" << rank << R"(},"traceEvents":[)"
        << Operator("aten::" + std::string(30, 'm'), 1, 10, "[4,8],[8,4]") << "]}";
  }
  testing::internal::CaptureStdout();
  EXPECT_EQ(ReportCommand({directory_ / "r0.json", directory_ / "r1.json", "ops", "--width", "60"}),
            kSuccess);
  std::fflush(stdout);
  EXPECT_THAT(LineOf(testing::internal::GetCapturedStdout(), 1), HasSubstr("rank"));
}

}  // namespace
}  // namespace ranktap::collector
