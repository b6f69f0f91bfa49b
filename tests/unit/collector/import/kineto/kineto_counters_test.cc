// Hardware counters in files of torch.profiler, beside the truth that the test planted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "collector/report/reports.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Reading(const std::string& kernel, int64_t ts, const std::string& metrics) {
  return "," + Span("cuda_profiler_range", kernel, ts, 50, metrics, 0, 0);
}
std::string Instructions(const std::string& what, int64_t count) {
  return "\"smsp__sass_thread_inst_executed_op_" + what + "_pred_on.sum\":" + std::to_string(count);
}

// A product of 64x128 by 128x256, 4,194,304 FLOPs, and a relu: a launch of each.
std::string OperatorLines() {
  return Span("cpu_op", "aten::linear", 0, 100,
              R"("Input Dims":[[64,128],[128,256]],"Input type":["float","float"])") +
         "," +
         Span("cpu_op", "aten::mm", 10, 80,
              R"("Input Dims":[[64,128],[128,256]],"Input type":["float","float"])") +
         "," + Call("cudaLaunchKernel", 20, 10, 1) + "," +
         Span("cpu_op", "aten::relu", 110, 50,
              R"("Input Dims":[[64,256]],"Input type":["float"])") +
         "," + Call("cudaLaunchKernel", 120, 10, 2);
}

TEST(CountersTest, TheKthReadingIsOfTheKthLaunchWhateverTheirOrderInTheFile) {
  const collector::Run run = OpenText(
      File("", OperatorLines() + Reading("relu_kernel", 300, Instructions("fadd", 16'384)) +
                   Reading("sgemm", 200,
                           Instructions("ffma", 2'097'000) + "," + Instructions("fmul", 304) +
                               R"(,"dram__bytes.sum":262144,"lts__t_bytes.sum":524288)")));
  EXPECT_EQ(run.traces.at(0).not_read, 0u);
  const Table launches = TabulateCounters(run, {.by = "launch"});
  ASSERT_EQ(launches.rows.size(), 2u);
  EXPECT_EQ(CellAt<std::string>(launches, 0, "name"), "sgemm");
  EXPECT_EQ(CellAt<std::string>(launches, 0, "bottom_operator"), "aten::mm");
  EXPECT_EQ(CellAt<std::string>(launches, 0, "top_operator"), "aten::linear");
  EXPECT_EQ(CellAt<std::string>(launches, 1, "bottom_operator"), "aten::relu");
  const Table operators = TabulateCounters(run, {.by = "operator"});
  const size_t product = RowWith<std::string>(operators, "name", "aten::mm");
  EXPECT_EQ(CellAt<int64_t>(operators, product, "flops"), 2 * 2'097'000 + 304);
  EXPECT_EQ(CellAt<int64_t>(operators, product, "analytic_flops"), 4'194'304);
  EXPECT_DOUBLE_EQ(CellAt<double>(operators, product, "memory_intensity"), 4'194'304.0 / 262'144);
  EXPECT_DOUBLE_EQ(CellAt<double>(operators, product, "l2_intensity"), 8.0);
  EXPECT_DOUBLE_EQ(CellAt<double>(operators, product, "measured_percent"), 100.0);
  EXPECT_EQ(
      CellAt<int64_t>(operators, RowWith<std::string>(operators, "name", "aten::relu"), "flops"),
      16'384);
  EXPECT_THAT(operators.notes, IsEmpty());
}

TEST(CountersTest, AnOperatorThatDidOtherWorkThanItsShapesSayIsNamed) {
  const collector::Run run = OpenText(
      File("", OperatorLines() + Reading("winograd", 200, Instructions("ffma", 1'048'576)) +
                   Reading("relu_kernel", 300, Instructions("fadd", 16'384))));
  EXPECT_THAT(
      TabulateCounters(run, {.by = "operator"}).notes,
      Contains(HasSubstr("aten::mm: the device did 50 % of the FLOPs that the shapes say")));
}

TEST(CountersTest, WithAnotherNumberOfLaunchesNoOperatorHasThem) {
  const collector::Run run =
      OpenText(File("", OperatorLines() + Reading("sgemm", 200, Instructions("ffma", 2'097'152))));
  const Table launches = TabulateCounters(run, {.by = "launch"});
  ASSERT_EQ(launches.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(launches, 0, "bottom_operator"), "");
  EXPECT_THAT(launches.notes, Contains(HasSubstr("counters of 1 kernels beside 2 launches")));
}

TEST(CountersTest, PercentsAreMeansAndPartsOfTheMemorysBytesAreNotCountedTwice) {
  const std::string occupancy = R"("sm__warps_active.avg.pct_of_peak_sustained_active":)";
  const collector::Run run = OpenText(File(
      "", OperatorLines() +
              Reading("same", 200,
                      occupancy + R"(40,"dram__bytes_read.sum":100,"dram__bytes_write.sum":20,
                                          "dram__bytes.sum":120)") +
              Reading("same", 300,
                      occupancy + R"(60,"dram__bytes_read.sum":3,"dram__bytes_write.sum":4)")));
  const Table kernels = TabulateCounters(run);
  ASSERT_EQ(kernels.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(kernels, 0, "launches"), 2);
  EXPECT_DOUBLE_EQ(CellAt<double>(kernels, 0, "occupancy_percent"), 50.0);
  EXPECT_EQ(CellAt<int64_t>(kernels, 0, "memory_bytes"), 127);
}

TEST(CountersTest, AReadingWithoutANumberIsCountedAsNotRead) {
  const collector::Run run =
      OpenText(File("", OperatorLines() + Reading("sgemm", 200, R"("x.sum":"many","y":[1])")));
  EXPECT_EQ(run.traces.at(0).not_read, 1u);
  EXPECT_EQ(run.traces.at(0).kernel_counters.size(), 0u);
  EXPECT_THAT(TabulateCounters(run).notes, Contains(HasSubstr("no hardware counters")));
}

}  // namespace
}  // namespace ranktap::collector
