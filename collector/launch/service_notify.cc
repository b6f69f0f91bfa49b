#include "collector/launch/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {

void NotifyService(std::string_view message) {
  const char* const path = ::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  const size_t length = std::strlen(path);
  if (length >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract one
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  (void)::sendto(socket.get(), message.data(), message.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

std::optional<uint64_t> WatchdogNs() {
  const char* const microseconds = ::getenv("WATCHDOG_USEC");
  if (microseconds == nullptr) return std::nullopt;
  const char* const pid = ::getenv("WATCHDOG_PID");
  if (pid != nullptr && std::strtoll(pid, nullptr, 10) != ::getpid()) return std::nullopt;
  const uint64_t value = std::strtoull(microseconds, nullptr, 10);
  return value == 0 ? std::nullopt : std::optional(value * 1000);
}

}  // namespace ranktap::collector
