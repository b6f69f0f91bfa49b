#include "collector/launch/forwarding.h"

#include <fmt/core.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "collector/file/owned_file.h"
#include "collector/launch/injection.h"

namespace ranktap::collector {
namespace {

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string NamesOf(const Variables& variables, char separator) {
  std::string names;
  for (const auto& [name, value] : variables) names += separator + name;
  return names;
}

void ThroughOpenMpi(const std::vector<std::string_view>& environment, const Variables& planned,
                    Forwarding* result) {
  std::vector<std::string>& command = result->command;
  const bool has_list =
      FindVariable(environment, "OMPI_MCA_mca_base_env_list").has_value() ||
      std::find(command.begin(), command.end(), "mca_base_env_list") != command.end();
  if (has_list) {
    result->messages.push_back(
        fmt::format("mca_base_env_list is in use, which Open MPI does not take together with -x: "
                    "on other machines nothing is traced unless it names{}",
                    NamesOf(planned, ' ')));
    return;
  }
  std::vector<std::string> exports;
  for (const auto& [name, value] : planned) exports.insert(exports.end(), {"-x", name});
  command.insert(command.begin() + 1, exports.begin(), exports.end());
}

// The list with ours behind it; nullopt: it says all, or nothing at all.
std::optional<std::string> WithOurs(std::string_view list, const Variables& planned,
                                    Forwarding* result) {
  if (list == "NONE" || list == "NIL") {
    result->messages.push_back(
        fmt::format("srun --export={} leaves our variables behind: nothing is traced; write "
                    "--export=ALL or a list",
                    list));
    return std::nullopt;
  }
  if (("," + std::string(list) + ",").find(",ALL,") != std::string::npos) return std::nullopt;
  return std::string(list) + NamesOf(planned, ',');
}

void ThroughSlurm(const std::vector<std::string_view>& environment, const Variables& planned,
                  Forwarding* result) {
  constexpr std::string_view kOption = "--export";
  for (size_t i = 1; i < result->command.size(); ++i) {
    std::string& word = result->command[i];
    if (word.empty() || word[0] != '-') continue;
    if (word == kOption && i + 1 < result->command.size()) {
      if (auto list = WithOurs(result->command[i + 1], planned, result)) {
        result->command[i + 1] = std::move(*list);
      }
      return;
    }
    if (!word.starts_with(std::string(kOption) + "=")) continue;
    if (const auto list = WithOurs(word.substr(kOption.size() + 1), planned, result)) {
      word = std::string(kOption) + "=" + *list;
    }
    return;
  }
  const auto inherited = FindVariable(environment, "SLURM_EXPORT_ENV");
  if (!inherited) return;
  if (const auto list = WithOurs(*inherited, planned, result)) {
    result->variables.emplace_back("SLURM_EXPORT_ENV", *list);
  }
}

bool IsDeepSpeed(const std::vector<std::string>& command) {
  const std::string_view name = BaseName(command[0]);
  if (name == "deepspeed" || name == "deepspeed.pt" || name == "accelerate") return true;
  constexpr size_t kWords = 8;  // python -u -m MODULE
  const auto end = command.begin() + static_cast<ptrdiff_t>(std::min(command.size(), kWords));
  return std::find(command.begin(), end, "deepspeed.launcher.runner") != end;
}

bool MayBeOpenMpi(const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 7> kNames = {
      "mpirun", "mpirun.openmpi", "mpiexec", "mpiexec.openmpi", "orterun", "oshrun", "prterun"};
  return std::find(kNames.begin(), kNames.end(), BaseName(command[0])) != kNames.end();
}

bool IsOpenMpi(const std::string& path) {
  std::string quoted;
  for (const char byte : path) quoted += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen(("'" + quoted + "' --version 2>/dev/null </dev/null").c_str(), "re"), ::pclose);
  if (pipe == nullptr) return false;
  std::array<char, 4096> text{};
  const size_t bytes = ::fread(text.data(), 1, text.size(), pipe.get());
  const std::string_view version(text.data(), bytes);
  return version.find("Open MPI") != std::string_view::npos ||
         version.find("OpenRTE") != std::string_view::npos ||
         version.find("PRRTE") != std::string_view::npos;
}

constexpr size_t kMostDeepSpeedBytes = 1u << 20;

// The text that DeepSpeed would read without us: the lines of DS_ENV_FILE in the home and here.
std::string ReadDeepSpeedFiles(const std::vector<std::string_view>& environment) {
  const std::filesystem::path name(
      FindVariable(environment, "DS_ENV_FILE").value_or(".deepspeed_env"));
  std::string lines;
  for (const std::filesystem::path& folder :
       {std::filesystem::path(FindVariable(environment, "HOME").value_or("")),
        std::filesystem::path(".")}) {
    const Result<std::string> file = ReadRegularFile(folder / name, kMostDeepSpeedBytes);
    if (file) lines += *file;
    if (!lines.empty() && lines.back() != '\n') lines += '\n';  // DeepSpeed ends at an empty line
    if (name.is_absolute()) break;
  }
  return lines;
}

void ThroughDeepSpeed(const std::vector<std::string_view>& environment, const Variables& planned,
                      const std::string& folder, Forwarding* result) {
  if (folder.empty()) {
    result->messages.push_back(
        "DeepSpeed takes ranktap's variables to other machines only from .deepspeed_env; "
        "`ranktap run --print-env` prints the lines");
    return;
  }
  const std::string path = std::filesystem::absolute(folder + "/deepspeed_env");
  std::ofstream file(path);
  file << ReadDeepSpeedFiles(environment);
  for (const auto& [name, value] : planned) file << name << '=' << value << '\n';
  file.close();
  if (file.fail()) {
    result->messages.push_back(fmt::format(
        "{}: could not be written; DeepSpeed takes no variables of ranktap's to other machines",
        path));
  } else {
    result->variables.emplace_back("DS_ENV_FILE", path);
  }
}

}  // namespace

Forwarding PrepareForwarding(const std::string& path, const std::vector<std::string>& command,
                             const std::vector<std::string_view>& environment,
                             const Variables& planned, const std::string& folder) {
  Forwarding result{.command = command, .variables = planned, .messages = {}};
  if (MayBeOpenMpi(command) && IsOpenMpi(path)) {
    ThroughOpenMpi(environment, planned, &result);
  } else if (BaseName(command[0]) == "srun") {
    ThroughSlurm(environment, planned, &result);
  } else if (IsDeepSpeed(command)) {
    ThroughDeepSpeed(environment, planned, folder, &result);
  }
  return result;
}

}  // namespace ranktap::collector
