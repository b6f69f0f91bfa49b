// The reports by the question that they answer, for help and pages.
#pragma once

#include <string_view>

#include "collector/report/report.h"

namespace ranktap::collector {

struct ReportGroupWords {
  ReportGroup group;
  std::string_view name;      // "memory"
  std::string_view question;  // one line
};
inline constexpr ReportGroupWords kReportGroups[] = {
    {ReportGroup::kTime, "time", "where the step's time goes on the device"},
    {ReportGroup::kRanks, "ranks", "who waits for whom"},
    {ReportGroup::kHost, "host", "what the program's threads do meanwhile"},
    {ReportGroup::kFramework, "framework", "operators, modules and FLOPs"},
    {ReportGroup::kMemory, "memory", "who holds it, and when"},
    {ReportGroup::kCapture, "capture", "what was recorded, and what is missing"},
};

// The six that most questions begin with; each is in its group, too.
inline constexpr std::string_view kFirstReports[] = {"verdict", "insights", "waterfall",
                                                     "steps",   "kernels",  "memory-peak"};

}  // namespace ranktap::collector
