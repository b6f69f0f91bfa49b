#include "collector/launch/out_of_reach.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace ranktap::collector {
namespace {

enum class Kind { kClearsEnvironment, kOwnEnvironment, kOwnFiles, kAsksDaemon, kOtherMachine };

struct Starter {
  std::string_view name;
  Kind kind;
};

constexpr auto kStarters = std::to_array<Starter>({{"sudo", Kind::kClearsEnvironment},
                                                   {"su", Kind::kClearsEnvironment},
                                                   {"doas", Kind::kClearsEnvironment},
                                                   {"docker", Kind::kOwnEnvironment},
                                                   {"podman", Kind::kOwnEnvironment},
                                                   {"nerdctl", Kind::kOwnEnvironment},
                                                   {"kubectl", Kind::kOwnEnvironment},
                                                   {"apptainer", Kind::kOwnFiles},
                                                   {"singularity", Kind::kOwnFiles},
                                                   {"enroot", Kind::kOwnFiles},
                                                   {"srun", Kind::kOwnFiles},
                                                   {"systemd-run", Kind::kAsksDaemon},
                                                   {"ssh", Kind::kOtherMachine}});

// The first folder or file on the way to `path` that other users may not use; empty: they may.
std::string ClosedOnTheWayTo(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string at = path.substr(0, end);
    struct stat status {};
    const mode_t wanted = end == std::string::npos ? S_IROTH : S_IXOTH;
    if (::stat(at.c_str(), &status) != 0 || (status.st_mode & wanted) == 0) return at;
    if (end == std::string::npos) return {};
  }
}

// Slurm's tasks are in containers only where pyxis puts them there.
bool StartsContainer(const std::vector<std::string>& command) {
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word.starts_with("--container-image") || word.starts_with("--container-name");
  });
}

std::string Advice(std::string_view name, Kind kind, const std::string& library) {
  switch (kind) {
    case Kind::kClearsEnvironment:
      return fmt::format(
          "{} clears the environment, which carries the agent. Put ranktap behind it: {} ... "
          "ranktap run -- COMMAND",
          name, name);
    case Kind::kOwnEnvironment:
      return fmt::format(
          "{} gives the container an environment of its own. Run ranktap inside the container, or "
          "ranktap collect beside it (docs/containers.md)",
          name);
    case Kind::kOwnFiles: {
      const char* const place = std::getenv("TMPDIR");
      return fmt::format(
          "{} starts a container, which sees the agent and this run's socket only where it mounts "
          "{} and {} (docs/containers.md)",
          name, std::filesystem::path(library).parent_path().parent_path().string(),
          place == nullptr || *place == 0 ? "/tmp" : place);
    }
    case Kind::kAsksDaemon:
      return fmt::format(
          "{} has a daemon start the processes. Put ranktap behind it: {} ... ranktap run -- "
          "COMMAND",
          name, name);
    case Kind::kOtherMachine:
      return "ssh leaves the environment behind. Run ranktap on the other machine: ssh HOST "
             "ranktap run -- COMMAND";
  }
  return {};
}

}  // namespace

std::string WhyOutOfReach(const std::vector<std::string>& command, const std::string& library) {
  const std::string name = command.empty() ? "" : command[0].substr(command[0].rfind('/') + 1);
  for (const Starter& starter : kStarters) {
    if (starter.name != name) continue;
    if (name == "srun" && !StartsContainer(command)) break;
    return Advice(name, starter.kind, library);
  }
  const std::string closed = ::geteuid() == 0 ? ClosedOnTheWayTo(library) : "";
  if (closed.empty()) return {};
  return fmt::format(
      "a process that became another user cannot load the agent: others may not enter or read {}. "
      "Install ranktap where all may: scripts/install /opt/ranktap",
      closed);
}

}  // namespace ranktap::collector
