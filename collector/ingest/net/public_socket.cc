#include "collector/ingest/net/public_socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

namespace ranktap::collector {
namespace {

constexpr int kRankBacklog = 4096;  // ranks of a node start at once

std::optional<Failure> PrepareDirectory(const std::string& directory, bool all_users) {
  const mode_t mode = all_users ? 0755 : 0700;
  if (::mkdir(directory.c_str(), mode) == 0) {
    (void)::chmod(directory.c_str(), mode);  // the umask may have taken bits away
  } else if (errno != EEXIST) {
    return SystemFailure(fmt::format("{}: could not create", directory), errno);
  }
  struct stat status {};
  if (::lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return Failure{
        fmt::format("{}: not a directory; name another socket with --socket", directory)};
  }
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Failure{
        fmt::format("{}: others may write there, so a socket in it could be anybody's; name one in "
                    "a directory of your own with --socket",
                    directory)};
  }
  return std::nullopt;
}

// The lock's holder, as it wrote itself down.
std::string HolderOf(int lock) {
  char text[32] = {};
  const ssize_t size = ::pread(lock, text, sizeof(text) - 1, 0);
  std::string pid(text, size > 0 ? static_cast<size_t>(size) : 0);
  while (!pid.empty() && pid.back() == '\n') pid.pop_back();
  return pid.empty() ? "unknown" : pid;
}

std::optional<Failure> Lock(const std::string& path, FileDescriptor* lock) {
  const std::string name = path + ".lock";
  lock->Reset(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock->valid()) return SystemFailure(fmt::format("{}: could not open", name), errno);
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
    return Failure{
        fmt::format("{}: another collector (pid {}) listens there; stop it, or name another socket "
                    "with --socket",
                    path, HolderOf(lock->get()))};
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock->get(), 0) != 0 ||
      ::pwrite(lock->get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return SystemFailure(fmt::format("{}: could not write", name), errno);
  }
  return std::nullopt;
}

}  // namespace

std::string PublicSocket::DefaultPath() {
  if (::geteuid() == 0) return "/run/ranktap/collector.sock";
  const char* const runtime = ::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') {
    return std::string(runtime) + "/ranktap/collector.sock";
  }
  return fmt::format("/tmp/ranktap-{}/collector.sock", ::geteuid());
}

Result<PublicSocket> PublicSocket::Create(const std::string& path, bool all_users) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path[0] != '/' || path.size() >= sizeof(address.sun_path)) {
    return Failure{
        fmt::format("'{}' is not a socket's path: it must be absolute and shorter than {} bytes",
                    path, sizeof(address.sun_path))};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  PublicSocket made;
  const std::string directory = std::filesystem::path(path).parent_path();
  if (auto failure = PrepareDirectory(directory, all_users)) return *failure;
  if (auto failure = Lock(path, &made.lock_)) return *failure;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return SystemFailure(fmt::format("{}: could not replace", path), errno);
  }
  made.listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.listener_.valid() ||
      ::bind(made.listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
          0 ||
      ::chmod(path.c_str(), all_users ? 0666 : 0600) != 0 ||
      ::listen(made.listener_.get(), kRankBacklog) != 0) {
    return SystemFailure(fmt::format("{}: could not listen", path), errno);
  }
  made.path_ = path;
  return made;
}

PublicSocket::~PublicSocket() {
  if (lock_.valid() && !path_.empty()) (void)::unlink(path_.c_str());
}

}  // namespace ranktap::collector
