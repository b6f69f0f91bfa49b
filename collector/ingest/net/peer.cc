#include "collector/ingest/net/peer.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace ranktap::collector {
namespace {

// struct pidfd_info of linux/pidfd.h, which Debian 12's headers do not have; 64 bytes is its first
// published size.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t pid, tgid, ppid;
  uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kPidfdInfoExit = 1u << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

constexpr int kMostGenerations = 1000;  // far beyond any; ends a walk whose pids were reused

// /proc/PID/stat from its third field, the state, on; empty: no such process.
std::istringstream StatOf(pid_t pid) {
  std::ifstream input(fmt::format("/proc/{}/stat", pid));
  std::stringstream text;
  text << input.rdbuf();
  const std::string line = text.str();
  const size_t after_name = line.rfind(')');
  return std::istringstream(after_name == std::string::npos ? "" : line.substr(after_name + 1));
}

pid_t ParentOf(pid_t pid) {
  std::istringstream fields = StatOf(pid);
  std::string state;
  pid_t parent = 0;
  fields >> state >> parent;
  return fields ? parent : 0;
}

// Field 52 of /proc/PID/stat, readable for the same user while the process is a zombie.
std::optional<int> ZombieExitCode(pid_t pid) {
  std::istringstream fields = StatOf(pid);
  std::string field, state;
  fields >> state;
  for (int i = 4; i <= 52; ++i) fields >> field;
  if (!fields || (state != "Z" && state != "X")) return std::nullopt;
  return std::stoi(field);
}

}  // namespace

std::optional<PeerCredentials> CredentialsOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return PeerCredentials{.uid = credentials.uid, .pid = credentials.pid};
}

FileDescriptor OpenPidfd(int socket, pid_t pid) {
  int fd = -1;
  socklen_t size = sizeof(fd);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0 && fd >= 0) {
    return FileDescriptor(fd);
  }
  // The pid may have been reused since connect(); then we watch a stranger, and EOF decides.
  if (pid <= 0) return {};
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool HasEnded(int pidfd) {
  pollfd poller{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&poller, 1, 0) == 1 && (poller.revents & (POLLIN | POLLHUP)) != 0;
}

bool DescendsFrom(int socket, pid_t pid, pid_t ancestor) {
  const FileDescriptor process = OpenPidfd(socket, pid);
  if (!process.valid() || pid <= 0) return false;
  pid_t at = pid;
  for (int i = 0; i < kMostGenerations && at > 1 && at != ancestor; ++i) at = ParentOf(at);
  // While it lives its pid is its own, and the walk began at it.
  return at == ancestor && pid != ancestor && !HasEnded(process.get());
}

std::string DescribeEnd(int pidfd, pid_t pid) {
  PidfdInfo info{};
  info.mask = kPidfdInfoExit;
  if (::ioctl(pidfd, kPidfdGetInfo, &info) == 0 && (info.mask & kPidfdInfoExit) != 0) {
    return DescribeWaitStatus(info.exit_code);
  }
  const std::optional<int> code = pid > 0 ? ZombieExitCode(pid) : std::nullopt;
  return code ? DescribeWaitStatus(*code) : "";
}

std::string DescribeWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* const name = ::sigabbrev_np(signal);
    return fmt::format("killed by signal {}{}", signal,
                       name != nullptr ? fmt::format(" (SIG{})", name) : "");
  }
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace ranktap::collector
