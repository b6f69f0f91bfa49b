#include "collector/cli/report_words.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "collector/terminal/complain.h"

namespace ranktap::collector {

std::string MeantReport(const std::vector<std::string>& paths,
                        const std::vector<const Report*>& wanted) {
  const bool compares = !wanted.empty() && wanted[0]->compare != nullptr;
  const auto is_there = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  std::vector<std::string> runs, reports;
  for (const std::string& word : paths) {
    const bool is_report = FindReport(word) != nullptr && !is_there(word);
    (is_report ? reports : runs).push_back(word);
  }
  if (!reports.empty()) {
    if (runs.empty()) runs.emplace_back("RUN");
    return fmt::format("reports come after the run: ranktap report {} {}", fmt::join(runs, " "),
                       fmt::join(reports, " "));
  }
  std::error_code error;
  const auto is_run = [&](const std::string& path) {
    return std::filesystem::is_directory(path, error);
  };
  if (compares || paths.size() < 2 || std::ranges::none_of(paths, is_run)) return "";
  if (paths.size() > 2) {
    return fmt::format("one run at a time, or two with diff: ranktap report {} {} diff", paths[0],
                       paths[1]);
  }
  return fmt::format("these are two runs; to compare them: ranktap report {} {} diff", paths[0],
                     paths[1]);
}

bool WayIsKnown(const std::string& by, const std::vector<const Report*>& reports) {
  for (const Report* const report : reports) {
    const std::vector<std::string_view> ways = WaysOf(*report);
    if (by.empty() || ways.empty() || std::ranges::count(ways, by) > 0) continue;
    Complain(fmt::format("--by {} is not a way of {}, which has {}", by, report->name,
                         fmt::join(ways, ", ")));
    return false;
  }
  return true;
}

}  // namespace ranktap::collector
