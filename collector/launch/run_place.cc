#include "collector/launch/run_place.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>

#include "proto/redact.h"

namespace ranktap::collector {
namespace {

// A disk whose last inode went into the directory, or that has no block left, is found out before
// the command starts: 64 KiB is a small trace.
std::optional<Failure> WhyNoRoom(const RunDirectory& directory) {
  static constexpr std::array<char, 65536> kSome{};
  const char* const name = ".room";
  const FileDescriptor file(::openat(directory.descriptor(), name,
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  errno = 0;
  const bool fits = file.valid() && ::write(file.get(), kSome.data(), kSome.size()) ==
                                        static_cast<ssize_t>(kSome.size());
  const int error = errno != 0 ? errno : ENOSPC;
  if (file.valid()) (void)::unlinkat(directory.descriptor(), name, 0);
  if (fits) return std::nullopt;
  return SystemFailure(fmt::format("{}: could not write there", directory.path()), error);
}

Result<RunDirectory> MakeIn(const std::string& output, const std::string& name) {
  std::error_code error;
  const bool was_there = !output.empty() && std::filesystem::exists(output, error);
  Result<RunDirectory> directory =
      output.empty() ? RunDirectory::CreateNew("", name) : RunDirectory::Create(output, name);
  if (!directory) return directory;
  const std::optional<Failure> full = WhyNoRoom(*directory);
  if (!full) return directory;
  if (!was_there || directory->path() != output) (void)::rmdir(directory->path().c_str());
  return *full;
}

}  // namespace

std::string RunNameOf(const std::vector<std::string>& command) {
  std::string name = command.empty() ? "" : command[0].substr(command[0].rfind('/') + 1);
  proto::RedactText(name);
  for (char& byte : name) {
    if (std::isalnum(static_cast<unsigned char>(byte)) == 0 && byte != '.' && byte != '_') {
      byte = '-';
    }
  }
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  return fmt::format("ranktap-{}-{}", name, stamp);
}

Result<RunPlace> FindRunPlace(const std::string& output, const std::string& name) {
  Result<RunDirectory> asked_for = MakeIn(output, name);
  if (asked_for) return RunPlace{std::move(*asked_for), ""};
  for (const char* const parent :
       {static_cast<const char*>(::getenv("TMPDIR")), "/var/tmp", "/tmp", "/dev/shm"}) {
    if (parent == nullptr || parent[0] != '/') continue;
    Result<RunDirectory> directory = MakeIn(fmt::format("{}/{}", parent, name), name);
    if (directory) return RunPlace{std::move(*directory), asked_for.message()};
  }
  return Failure{asked_for.message()};
}

}  // namespace ranktap::collector
