#include "collector/ingest/store/old_runs.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>

#include "collector/file/file_descriptor.h"
#include "collector/file/owned_file.h"
#include "collector/file/run_info.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostRunNames = 100'000, kMostRunJson = 64 << 20;
// A process that comes back to its run after a pause finds it.
constexpr uint64_t kInUseNs = 3'600'000'000'000;

struct FinishedRun {
  std::string user, name;
  uid_t uid = 0;
  uint64_t last_ns = 0, bytes = 0;
};

// What a run has beside its files: a hang's stacks, and a dump.
bool IsPartOfRun(const std::string& name) {
  return name.starts_with("hang-") || name.starts_with("dump-");
}

void AddFile(const struct stat& status, FinishedRun* run) {
  run->bytes += static_cast<uint64_t>(status.st_blocks) * 512;
  run->last_ns =
      std::max(run->last_ns, static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                                 static_cast<uint64_t>(status.st_mtim.tv_nsec));
}

// nullopt: a process is in it, or it is no run.
std::optional<FinishedRun> LookAt(const FileDescriptor& directory, const std::string& path,
                                  uid_t uid, uint64_t* bytes) {
  FinishedRun run{.uid = uid};
  for (const std::string& name : NamesIn(directory.get(), kMostRunNames)) {
    struct stat status {};
    if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(status.st_mode)) {
      AddFile(status, &run);
      continue;
    }
    if (!IsPartOfRun(name)) return std::nullopt;
    const auto part = OpenOwnedDirectory(directory.get(), name, uid, path + "/" + name);
    if (!part) return std::nullopt;
    for (const std::string& file : NamesIn(part->get(), kMostRunNames)) {
      if (::fstatat(part->get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(status.st_mode)) return std::nullopt;
      AddFile(status, &run);
    }
  }
  *bytes += run.bytes;
  const Result<std::string> json =
      ReadOwnedFile(directory.get(), "run.json", uid, path + "/run.json", kMostRunJson);
  if (!json) return std::nullopt;
  const Result<RunInfo> info = ParseRunInfo(*json, path);
  if (!info) return std::nullopt;
  const auto is_open = [](const TraceInfo& trace) { return trace.status == TraceStatus::kOpen; };
  if (std::ranges::any_of(info->traces, is_open)) return std::nullopt;
  return run;
}

std::string Remove(int root, const std::string& root_path, const FinishedRun& run) {
  const std::string path = root_path + "/" + run.user + "/" + run.name;
  const Result<FileDescriptor> user = OpenOwnedDirectory(root, run.user, ::geteuid(), path);
  if (!user) return user.message();
  {
    const Result<FileDescriptor> directory =
        OpenOwnedDirectory(user->get(), run.name, run.uid, path);
    if (!directory) return directory.message();
    for (const std::string& name : NamesIn(directory->get(), kMostRunNames)) {
      if (::unlinkat(directory->get(), name.c_str(), 0) == 0 || !IsPartOfRun(name)) continue;
      if (const auto part =
              OpenOwnedDirectory(directory->get(), name, run.uid, path + "/" + name)) {
        for (const std::string& file : NamesIn(part->get(), kMostRunNames)) {
          (void)::unlinkat(part->get(), file.c_str(), 0);
        }
      }
      (void)::unlinkat(directory->get(), name.c_str(), AT_REMOVEDIR);
    }
  }
  if (::unlinkat(user->get(), run.name.c_str(), AT_REMOVEDIR) == 0) return "";
  return SystemFailure(fmt::format("{}: could not be removed", path), errno).message;
}

std::vector<FinishedRun> FindRuns(int root, const std::string& root_path, uint64_t* bytes) {
  std::vector<FinishedRun> found;
  for (const std::string& user : NamesIn(root, kMostRunNames)) {
    uid_t uid = 0;
    const char* const end = user.data() + user.size();
    const auto [rest, error] = std::from_chars(user.data(), end, uid);
    if (error != std::errc() || rest != end) continue;
    const std::string path = root_path + "/" + user;
    const Result<FileDescriptor> folder = OpenOwnedDirectory(root, user, ::geteuid(), path);
    if (!folder) continue;
    for (const std::string& name : NamesIn(folder->get(), kMostRunNames)) {
      const std::string run_path = path + "/" + name;
      const auto directory = OpenOwnedDirectory(folder->get(), name, uid, run_path);
      if (!directory) continue;
      if (auto run = LookAt(*directory, run_path, uid, bytes)) {
        run->user = user;
        run->name = name;
        found.push_back(std::move(*run));
      }
    }
  }
  std::ranges::sort(found, {}, &FinishedRun::last_ns);
  return found;
}

}  // namespace

std::optional<uint64_t> ParseBytes(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0) || !std::isfinite(value)) return std::nullopt;
  std::string_view unit(rest, text.data() + text.size());
  for (const std::string_view ending : {"iB", "B"}) {
    if (unit.ends_with(ending)) unit.remove_suffix(ending.size());
  }
  constexpr std::string_view kUnits = "KMGTP";
  if (unit.size() > 1 || (unit.size() == 1 && kUnits.find(unit[0]) == kUnits.npos)) {
    return std::nullopt;
  }
  const size_t power = unit.empty() ? 0 : kUnits.find(unit[0]) + 1;
  const double bytes = std::ldexp(value, static_cast<int>(10 * power));
  if (bytes < 1 || bytes > 9e18) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::vector<std::string> RemoveOldRuns(const std::string& root, uint64_t now_realtime_ns,
                                       RunCleaning* cleaning) {
  const RunLimits& limits = cleaning->limits;
  std::vector<std::string> said;
  const FileDescriptor folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return said;
  uint64_t bytes = 0;
  for (const FinishedRun& run : FindRuns(folder.get(), root, &bytes)) {
    const uint64_t age = now_realtime_ns > run.last_ns ? now_realtime_ns - run.last_ns : 0;
    const bool is_old = limits.age_ns != 0 && age > limits.age_ns;
    const bool is_too_much = limits.bytes != 0 && bytes > limits.bytes;
    if (age < kInUseNs || (!is_old && !is_too_much)) continue;
    const std::string problem = Remove(folder.get(), root, run);
    if (!problem.empty()) {
      said.push_back(problem);
      continue;
    }
    bytes -= std::min(bytes, run.bytes);
    ++cleaning->runs_removed;
    cleaning->bytes_removed += run.bytes;
    said.push_back(fmt::format(
        "{}/{}/{} was removed: {}", root, run.user, run.name,
        is_old ? "it is older than --keep-runs" : "the runs took more than --max-disk"));
  }
  cleaning->bytes_kept = bytes;
  return said;
}

}  // namespace ranktap::collector
