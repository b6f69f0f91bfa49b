#include "collector/launch/wanted_capture.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "collector/file/owned_file.h"

namespace ranktap::collector {
namespace {

constexpr std::array<std::string_view, 6> kScheduleNames = {
    "wait", "warmup", "active", "repeat", "skip-first", "skip-first-wait"};

std::string WithoutSpaces(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// nullopt: it is none.
std::optional<uint64_t> NumberIn(const std::string& text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
  return number;
}

bool IsScheduleName(std::string name) {
  for (char& byte : name) byte = byte == '_' ? '-' : byte;
  for (const std::string_view known : kScheduleNames) {
    if (name == known) return true;
  }
  return false;
}

bool IsThere(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool IsPython(const std::string& program) {
  if (program.substr(program.rfind('/') + 1).starts_with("python")) return true;
  char first[256] = {};
  const Result<FileDescriptor> file = OpenRegularFile(program);
  if (!file || ::pread(file->get(), first, sizeof first - 1, 0) < 2) return false;
  const std::string_view line =
      std::string_view(first).substr(0, std::string_view(first).find('\n'));
  return line.starts_with("#!") && line.find("python") != line.npos;
}

}  // namespace

std::optional<uint32_t> ParseBudget(std::string_view text) {
  double percent = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view unit(rest, text.data() + text.size());
  if (error != std::errc() || (unit != "" && unit != "%") || !(percent >= 0.0001) ||
      percent > 100) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(percent * 1e4);
}

std::string WhyNoSchedule(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    const std::string name = WithoutSpaces(part.substr(0, equals));
    const auto number =
        equals == part.npos ? std::nullopt : NumberIn(WithoutSpaces(part.substr(equals + 1)));
    if (!IsScheduleName(name) || !number) {
      return fmt::format(
          "--schedule: '{}' is not one of wait, warmup, active, repeat, skip-first, "
          "skip-first-wait with a number, as in wait=1,warmup=1,active=3",
          part);
    }
    if (name == "active" && *number == 0) return "--schedule: active is at least 1";
  }
  return "";
}

bool HasDriver() {
  for (const char* const place : {"/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version"}) {
    if (IsThere(place)) return true;
  }
  const char* const preload = ::getenv("LD_PRELOAD");
  if (preload != nullptr && std::string_view(preload).find("libcuda") != std::string_view::npos) {
    return true;
  }
  const char* const folders = ::getenv("LD_LIBRARY_PATH");
  std::string_view rest = folders == nullptr ? "" : folders;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (!folder.empty() && IsThere(std::string(folder) + "/libcuda.so.1")) return true;
  }
  return false;
}

std::string ResolvedLevel(const std::string& asked) {
  if (asked != "auto") return asked;
  return HasDriver() ? "kernels" : "full";
}

std::string SampleOfAuto() { return HasDriver() ? "" : "10ms"; }

std::string AdviceOnLevel(const std::string& level, const std::string& program) {
  if (level == "auto") {
    return HasDriver() ? "level auto: kernels, as an NVIDIA driver is here"
                       : "level auto: full, as no NVIDIA driver is here: PyTorch where a process "
                         "loads it, and samples of Python";
  }
  if (level == "full" || level == "dormant" || HasDriver() || !IsPython(program)) return "";
  return fmt::format(
      "no NVIDIA driver is here: level {} sees NVTX ranges only; --level full records PyTorch, and "
      "--level auto chooses",
      level);
}

}  // namespace ranktap::collector
