#include "collector/ingest/net/private_socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace ranktap::collector {
namespace {

// Ranks of a node start at once; with listen(8), 55 of 64 connects fail (docs/decisions/).
constexpr int kBacklog = 4096;

std::optional<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

constexpr std::string_view kPrefix = "ranktap-";
constexpr size_t kRandom = 6;  // letters of mkdtemp
constexpr time_t kYoungSeconds = 60;

void RemoveIfDead(const std::filesystem::path& directory) {
  const std::string name = directory.filename();
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kRandom) return;
  const FileDescriptor opened(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened.valid() || ::fstat(opened.get(), &status) != 0 || status.st_uid != ::geteuid() ||
      (status.st_mode & 066) != 0 || status.st_mtime + kYoungSeconds > ::time(nullptr)) {
    return;
  }
  if (::fstatat(opened.get(), "socket", &status, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISSOCK(status.st_mode) || CanConnect(directory / "socket")) return;
    (void)::unlinkat(opened.get(), "socket", 0);
  }
  (void)::unlinkat(opened.get(), "socket.why", 0);  // of `ranktap run`
  (void)::rmdir(directory.c_str());                 // refuses where something else is in it
}

bool EverybodyMayEnter(std::string path) {
  while (true) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || (status.st_mode & S_IXOTH) == 0) return false;
    if (path == "/") return true;
    path.resize(std::max<size_t>(path.rfind('/'), 1));
  }
}

// A fresh directory 0700 (mkdtemp sees to that), 0711 for root; empty when none could be made under
// `parent`.
std::string MakeDirectory(const char* parent) {
  if (parent == nullptr || parent[0] != '/') return {};
  const bool for_all = ::geteuid() == 0;
  if (for_all && !EverybodyMayEnter(parent)) return {};
  std::string path = std::string(parent) + "/" + std::string(kPrefix) + "XXXXXX";
  if (!AddressOf(path + "/socket") || ::mkdtemp(path.data()) == nullptr) return {};
  if (for_all) (void)::chmod(path.c_str(), 0711);
  return path;
}

}  // namespace

Result<PrivateSocket> PrivateSocket::Create() {
  PrivateSocket made;
  const std::array<const char*, 3> parents = {::getenv("XDG_RUNTIME_DIR"), ::getenv("TMPDIR"),
                                              "/tmp"};
  for (const char* const parent : parents) {
    if (parent != nullptr && parent[0] == '/') RemoveDeadSockets(parent);
    made.directory_ = MakeDirectory(parent);
    if (!made.directory_.empty()) break;
  }
  if (made.directory_.empty()) return SystemFailure("/tmp: could not make a socket there", errno);
  made.path_ = made.directory_ + "/socket";
  made.listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = *AddressOf(made.path_);
  if (!made.listener_.valid() ||
      ::bind(made.listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
          0 ||
      ::chmod(made.path_.c_str(), ::geteuid() == 0 ? 0666 : 0600) != 0 ||
      ::listen(made.listener_.get(), kBacklog) != 0) {
    return SystemFailure(fmt::format("{}: could not listen", made.path_), errno);
  }
  return made;
}

PrivateSocket::~PrivateSocket() {
  if (directory_.empty()) return;
  if (!path_.empty()) (void)::unlink(path_.c_str());
  (void)::rmdir(directory_.c_str());
}

void RemoveDeadSockets(const std::string& parent) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(parent, error), end; !error && at != end;
       at.increment(error)) {
    RemoveIfDead(at->path());
  }
}

bool CanConnect(const std::string& path) {
  const auto address = AddressOf(path);
  if (!address) return false;
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // EAGAIN: somebody listens whose queue is full, as of a collector that is stopped.
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) ==
             0 ||
         errno == EAGAIN;
}

}  // namespace ranktap::collector
