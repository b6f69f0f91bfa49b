// The reports by the question that they answer, for help and pages.
#pragma once

#include <span>
#include <string_view>

namespace ranktap::collector {

struct ReportGroup {
  std::string_view name;      // "memory"
  std::string_view question;  // one line
  std::span<const std::string_view> reports;
};

// Every report of the registry is in exactly one.
std::span<const ReportGroup> ReportGroups();

// The six that most questions begin with; each is in its group, too.
std::span<const std::string_view> FirstReports();

}  // namespace ranktap::collector
