// The registry: what its rows promise.
#include <gtest/gtest.h>

#include <set>

#include "collector/report/insights/rules.h"
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
        std::pair("nvtx_pushpop_sum", "ranges"), std::pair("cuda_gpu_mem_size_sum", "copies"),
        std::pair("gpu_gaps", "insights"), std::pair("nccl_sum", "comm")}) {
    ASSERT_NE(FindReport(nsys), nullptr) << nsys;
    EXPECT_EQ(FindReport(nsys)->name, ours);
  }
  EXPECT_EQ(FindReport("um_sum"), nullptr);
}

TEST(ReportRegistryTest, EachRuleOfNsysIsOneRuleOfOurs) {
  std::set<std::string_view> known;
  for (const InsightRule& rule : AllInsightRules()) known.insert(rule.nsys);
  for (const char* const nsys : {"cuda_api_sync", "cuda_memcpy_async", "cuda_memcpy_sync",
                                 "cuda_memset_sync", "gpu_gaps", "gpu_time_util"}) {
    ASSERT_NE(FindReport(nsys), nullptr) << nsys;
    EXPECT_EQ(AboutNothing(*FindReport(nsys)).name, "insights");
    EXPECT_TRUE(known.contains(nsys)) << nsys;
  }
}

}  // namespace
}  // namespace ranktap::collector
