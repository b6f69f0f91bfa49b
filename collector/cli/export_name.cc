#include "collector/cli/export_name.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// "slow" of "runs/slow/", "rank0" of "rank0.json.gz"; the folder's name of several files.
std::string NameOf(const std::vector<std::string>& paths) {
  std::error_code error;
  fs::path path = fs::absolute(paths[0], error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (paths.size() > 1) path = path.parent_path();
  std::string name = path.filename().string();
  if (name.empty()) return "run";
  if (paths.size() > 1 || fs::is_directory(paths[0], error)) return name;
  for (const char* const ending :
       {".pt.trace", ".trace", ".json", ".sqlite", ".pftrace", ".et", "."}) {
    if (const size_t at = name.find(ending, 1); at != name.npos) return name.substr(0, at);
  }
  return name;
}

bool IsOneOf(const std::vector<std::string>& paths, const std::string& output) {
  std::error_code error;
  return std::ranges::any_of(
      paths, [&](const std::string& path) { return fs::equivalent(path, output, error); });
}

}  // namespace

std::string DefaultOutput(const std::vector<std::string>& paths,
                          const std::vector<const Exporter*>& exporters, size_t ranks) {
  const std::string name = NameOf(paths);
  if (exporters.size() > 1) return name + "-export";
  const Exporter& exporter = *exporters[0];
  const bool is_folder = exporter.makes_folder || (exporter.heeds & kDataSet) != 0 ||
                         (!exporter.ranks_in_one_file && ranks > 1);
  if (is_folder) return name + "-" + std::string(exporter.name);
  const std::string output = name + std::string(exporter.extension);
  return IsOneOf(paths, output) ? name + "-export" + std::string(exporter.extension) : output;
}

std::string DescribeHandedOn(const std::set<std::string>& names) {
  return fmt::format(
      "the file still has what the program wrote of itself, and no text that looks like a "
      "credential ({})",
      fmt::join(names, ", "));
}

}  // namespace ranktap::collector
