// The registry: what its rows promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "collector/report/former_names.h"
#include "collector/report/insights/rules.h"
#include "collector/report/report.h"
#include "collector/report/report_groups.h"
#include "collector/report/table_filter.h"
#include "collector/report/text/cell_text.h"

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

// With each option of its own and without: some add columns.
std::vector<Table> AllShapes(const Report& report) {
  std::vector<Table> tables = {AboutNothing(report)};
  for (const std::string_view by : WaysOf(report)) {
    tables.push_back(report(collector::Run(), {.by = std::string(by)}));
  }
  if (report.run == nullptr) return tables;
  for (const ReportOptions& options :
       {ReportOptions{.hta_compat = true}, ReportOptions{.by_shape = true},
        ReportOptions{.by_stack = 3}, ReportOptions{.by_module = true},
        ReportOptions{.by_grid = true}, ReportOptions{.operator_name = "aten"}}) {
    tables.push_back(report(collector::Run(), options));
  }
  return tables;
}

TEST(ReportRegistryTest, NoTwoColumnsOfATableAreShownUnderOneName) {
  for (const Report& report : AllReports()) {
    for (const Table& table : AllShapes(report)) {
      for (const TimeUnit unit : {TimeUnit::kAuto, TimeUnit::kUs}) {
        std::set<std::string> names;
        for (const std::string& heading : FormatHeadings(table, unit)) {
          EXPECT_TRUE(names.insert(heading).second) << report.name << ": " << heading;
        }
      }
    }
  }
}

TEST(ReportRegistryTest, EachColumnSaysWhatItMeansInASentenceThatFitsACell) {
  for (const Report& report : AllReports()) {
    for (const Table& table : AllShapes(report)) {
      for (const TableColumn& column : table.columns) {
        EXPECT_TRUE(column.meaning.ends_with('.') && column.meaning.size() <= 150)
            << report.name << "." << column.name << ": " << column.meaning;
      }
    }
  }
}

TEST(ReportRegistryTest, AColumnIsKeptAndSortedByUnderItsFormerName) {
  for (const FormerName& name : FormerColumnNames()) {
    Table table = AboutNothing(*FindReport(name.report));
    ASSERT_TRUE(KeepColumns({std::string(name.former)}, &table)) << name.former;
    EXPECT_EQ(table.columns[0].name, name.now);
    EXPECT_TRUE(SortBy(std::string(name.former), &table));
  }
}

TEST(ReportRegistryTest, TimesBytesSharesAndFlopsHaveTheirUnitsInText) {
  for (const Report& report : AllReports()) {
    for (const Table& table : AllShapes(report)) {
      for (const TableColumn& column : table.columns) {
        const std::string& name = column.name;
        EXPECT_EQ(name.ends_with("_ns"), column.unit == Unit::kNs) << report.name << ": " << name;
        if (name.ends_with("bytes")) {
          EXPECT_EQ(column.unit, Unit::kBytes) << report.name << ": " << name;
        }
        if (name.ends_with("_percent")) {
          EXPECT_EQ(column.unit, Unit::kPercent) << report.name << ": " << name;
        }
        if (name.find("flops") != name.npos || name.ends_with("macs")) {
          const bool is_rate = name.ends_with("per_second") || name == "peak_flops";
          EXPECT_EQ(column.unit, is_rate ? Unit::kFlopsPerSecond : Unit::kFlops)
              << report.name << ": " << name;
        }
        EXPECT_EQ(name.ends_with("gb_per_s"), column.unit == Unit::kGbPerSecond)
            << report.name << ": " << name;
      }
    }
  }
}

TEST(ReportRegistryTest, ByGivesTheReportThatHadANameOfItsOwn) {
  for (const auto& [name, of, by] : {std::tuple("range-kernels", "ranges", "kernel"),
                                     std::tuple("range-projection", "ranges", "projection"),
                                     std::tuple("range-trace", "ranges", "instance"),
                                     std::tuple("launches-by-kernel", "launches", "kernel"),
                                     std::tuple("kernel-histogram", "kernels", "duration"),
                                     std::tuple("waterfall-by-rank", "waterfall", "rank"),
                                     std::tuple("usage-over-time", "usage", "window")}) {
    const Table table = (*FindReport(of))(collector::Run(), {.by = by});
    EXPECT_EQ(table.name, name);
    EXPECT_EQ(FormatHeadings(table), FormatHeadings(AboutNothing(*FindReport(name))));
    EXPECT_NE(FormatHeadings(table), FormatHeadings(AboutNothing(*FindReport(of))));
    EXPECT_TRUE(std::ranges::none_of(AllReports(),
                                     [&](const Report& report) { return report.name == name; }));
  }
}

TEST(ReportRegistryTest, TheFirstReportsAreInTheRegistryAndEachGroupHasSome) {
  for (const std::string_view name : kFirstReports) EXPECT_NE(FindReport(name), nullptr) << name;
  for (const ReportGroupWords& group : kReportGroups) {
    EXPECT_TRUE(std::ranges::any_of(AllReports(), [&](const Report& report) {
      return report.group == group.group;
    })) << group.name;
  }
}

TEST(ReportRegistryTest, EachOptionIsHeededBySomeReport) {
  for (const ReportOption& option : kReportOptions) {
    EXPECT_NE(NamesThatHeed(option.bit), "") << option.name;
  }
  EXPECT_EQ(NamesThatHeed(kOperator), "pace, patterns");
}

TEST(ReportRegistryTest, NsysNamesFindTheReportThatAnswersTheSame) {
  for (const auto& [nsys, ours] : {std::pair("cuda_gpu_kern_sum", "kernels"),
                                   std::pair("cuda_api_sum", "apis"),
                                   std::pair("nvtx_pushpop_sum", "ranges"),
                                   std::pair("nvtx_kern_sum", "range-kernels"),
                                   std::pair("nvtx_gpu_proj_sum", "range-projection"),
                                   std::pair("nvtx_pushpop_trace", "range-trace"),
                                   std::pair("cuda_kern_exec_sum", "launches-by-kernel"),
                                   std::pair("cuda_gpu_mem_size_sum", "copies"),
                                   std::pair("gpu_gaps", "insights"),
                                   std::pair("nccl_sum", "comm"),
                                   std::pair("cuda_gpu_kern_hist", "kernel-histogram"),
                                   std::pair("cuda_gpu_kern_gb_sum", "kernels"),
                                   std::pair("cuda_gpu_kern_pace", "pace"),
                                   std::pair("cuda_gpu_mem_time_sum", "copies"),
                                   std::pair("cuda_gpu_time_util_map", "usage-over-time"),
                                   std::pair("nccl_gpu_overlap_trace", "overlap"),
                                   std::pair("nvtx_pace", "pace"),
                                   std::pair("nvtx_gpu_proj_trace", "range-trace"),
                                   std::pair("nvtx_startend_sum", "ranges"),
                                   std::pair("nvtx_sum", "ranges")}) {
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
