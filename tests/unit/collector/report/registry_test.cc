// The registry: what its rows promise.
#include <gtest/gtest.h>

#include <set>

#include "collector/report/report.h"

namespace ranktap::collector {
namespace {

Table AboutNothing(const Report& report) {
  const Run nothing;
  return report.compare != nullptr ? report(nothing, nothing) : report(nothing);
}

TEST(ReportRegistryTest, EachReportNamesItsColumnsForARunWithoutRanks) {
  for (const Report& report : AllReports()) {
    EXPECT_FALSE(AboutNothing(report).columns.empty()) << report.name;
  }
}

TEST(ReportRegistryTest, ATableHasTheNameOfItsRowAndNoColumnTwice) {
  for (const Report& report : AllReports()) {
    const Table table = AboutNothing(report);
    EXPECT_EQ(table.name, report.name);
    std::set<std::string> names;
    for (const TableColumn& column : table.columns) {
      EXPECT_TRUE(names.insert(column.name).second) << report.name << ": " << column.name;
    }
  }
}

TEST(ReportRegistryTest, EachOptionIsHeededBySomeReport) {
  for (const ReportOption& option : kReportOptions) {
    EXPECT_NE(NamesThatHeed(option.bit), "") << option.name;
  }
  EXPECT_EQ(NamesThatHeed(kOperator), "patterns");
}

TEST(ReportRegistryTest, NsysNamesFindTheReportThatAnswersTheSame) {
  for (const auto& [nsys, ours] :
       {std::pair("cuda_gpu_kern_sum", "kernels"), std::pair("cuda_api_sum", "apis"),
        std::pair("nvtx_pushpop_sum", "ranges"), std::pair("nvtx_kern_sum", "range-kernels"),
        std::pair("nvtx_gpu_proj_sum", "range-projection"),
        std::pair("nvtx_pushpop_trace", "range-trace"),
        std::pair("cuda_kern_exec_sum", "launches-by-kernel"),
        std::pair("cuda_gpu_mem_size_sum", "copies"), std::pair("gpu_gaps", "idle"),
        std::pair("nccl_sum", "comm")}) {
    ASSERT_NE(FindReport(nsys), nullptr) << nsys;
    EXPECT_EQ(FindReport(nsys)->name, ours);
  }
  EXPECT_EQ(FindReport("um_sum"), nullptr);
}

}  // namespace
}  // namespace ranktap::collector
