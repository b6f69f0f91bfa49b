#include "collector/terminal/later_runs.h"

#include <fmt/core.h>

#include <filesystem>

#include "collector/file/printable.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

// "20261122-101500": a run's name ends with the time at which it began.
std::string StampOf(const std::string& path) {
  constexpr size_t kLength = 15;
  return path.size() < kLength ? path : path.substr(path.size() - kLength);
}

}  // namespace

std::string LastRunIn(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path.ends_with("/.") || !fs::exists(fs::path(path) / "run.json", error)) return path;
  std::string last;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    if (!fs::exists(at->path() / "run.json", unreadable)) continue;
    if (at->path().filename().string().starts_with("dump-")) continue;  // a part of this one
    const std::string found = at->path().string();
    if (last.empty() || StampOf(found) > StampOf(last)) last = found;
  }
  return last.empty() ? path : last;
}

std::vector<std::string> LastRunsIn(const std::vector<std::string>& paths) {
  std::vector<std::string> last;
  for (const std::string& path : paths) {
    last.push_back(LastRunIn(path));
    if (last.back() == path) continue;
    Complain(Printable(fmt::format("{} was used again: this is its last run, {}; the first is {}/.",
                                   path, last.back(), path)));
  }
  return last;
}

}  // namespace ranktap::collector
