#include "collector/report/report_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "collector/report/report.h"

namespace ranktap::collector {
namespace {

TEST(ReportGroupsTest, EveryReportIsInExactlyOneGroup) {
  std::map<std::string_view, int> groups;
  for (const ReportGroup& group : ReportGroups()) {
    for (const std::string_view name : group.reports) {
      EXPECT_NE(FindReport(name), nullptr) << name;
      ++groups[name];
    }
  }
  for (const Report& report : AllReports()) {
    EXPECT_EQ(groups[report.name], 1) << report.name << ": add it to report_groups.cc";
  }
}

TEST(ReportGroupsTest, SixComeFirstAndAreInTheGroups) {
  EXPECT_EQ(FirstReports().size(), 6u);
  for (const std::string_view name : FirstReports()) {
    EXPECT_TRUE(std::ranges::any_of(ReportGroups(), [name](const ReportGroup& group) {
      return std::ranges::count(group.reports, name) == 1;
    })) << name;
  }
}

}  // namespace
}  // namespace ranktap::collector
