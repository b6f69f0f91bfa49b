#include "collector/cli/compared_runs.h"

#include <filesystem>
#include <iterator>

#include "collector/file/owned_file.h"
#include "collector/file/printable.h"
#include "collector/import/open_run.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/later_runs.h"
#include "collector/terminal/progress_line.h"

namespace ranktap::collector {
namespace {

constexpr size_t kLargestBaseline = size_t{64} << 20;

std::optional<Baseline> BaselineAt(const std::string& path) {
  std::error_code ignored;
  if (!path.ends_with(".json") || !std::filesystem::is_regular_file(path, ignored)) {
    return std::nullopt;
  }
  const Result<std::string> text = ReadRegularFile(path, kLargestBaseline);
  return text ? ParseBaseline(*text) : std::nullopt;
}

}  // namespace

std::optional<std::vector<RunFigures>> FiguresAt(const std::vector<std::string>& paths) {
  std::vector<RunFigures> all;
  const ProgressLine progress;
  for (const std::string& path : paths) {
    if (std::optional<Baseline> baseline = BaselineAt(path)) {
      std::move(baseline->runs.begin(), baseline->runs.end(), std::back_inserter(all));
      continue;
    }
    const Result<Run> run = OpenRun({LastRunIn(path)});
    if (!run) {
      Complain(run.message());
      return std::nullopt;
    }
    for (const std::string& problem : run->problems) Complain(Printable(problem));
    all.push_back(FiguresOf(*run));
  }
  return all;
}

std::map<std::string, Baseline> BaselinesIn(const std::string& folder, std::error_code* error) {
  std::map<std::string, Baseline> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, *error)) {
    if (auto baseline = BaselineAt(entry.path().string())) {
      found.emplace(entry.path().stem().string(), std::move(*baseline));
    }
  }
  return found;
}

}  // namespace ranktap::collector
