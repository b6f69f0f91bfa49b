#include "collector/terminal/later_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "collector/file/printable.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {

std::optional<std::string> LaterRunsIn(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(fs::path(path) / "run.json", error)) return std::nullopt;
  std::vector<std::string> found;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    if (fs::exists(at->path() / "run.json", unreadable)) found.push_back(at->path().string());
  }
  if (found.empty()) return std::nullopt;
  // Their names end with the time.
  std::sort(found.begin(), found.end());
  if (found.size() == 1) return fmt::format("{} holds a later run too: {}", path, found.back());
  return fmt::format("{} holds {} later runs too, the last: {}", path, found.size(), found.back());
}

void TellOfLaterRuns(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (const auto later = LaterRunsIn(path)) Complain(Printable(*later));
  }
}

}  // namespace ranktap::collector
