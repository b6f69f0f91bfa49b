#include "collector/launch/agent_reasons.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "collector/file/printable.h"
#include "collector/launch/injection.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostReasons = 5;

}  // namespace

AgentReasons::AgentReasons(const std::string& collector_socket)
    : path_(collector_socket + ".why"),
      socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path_.size() >= sizeof(address.sun_path)) return;
  path_.copy(address.sun_path, path_.size());
  (void)::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

AgentReasons::~AgentReasons() { ::unlink(path_.c_str()); }

void AgentReasons::Tell(const std::string& command) {
  std::error_code error;
  const std::string said =
      InjectionObstacle(command).empty() ? "" : std::filesystem::canonical(command, error).string();
  for (const std::string& reason : Take()) {
    if (said.empty() || !reason.starts_with(said + ": ")) Complain(reason);
  }
}

std::vector<std::string> AgentReasons::Take() {
  std::vector<std::string> reasons;
  std::array<char, 1024> line;
  ssize_t size;
  while ((size = ::recv(socket_.get(), line.data(), line.size(), MSG_DONTWAIT)) > 0) {
    std::string reason = Printable(std::string_view(line.data(), static_cast<size_t>(size)));
    if (std::ranges::find(reasons, reason) == reasons.end() && reasons.size() < kMostReasons) {
      reasons.push_back(std::move(reason));
    }
  }
  return reasons;
}

}  // namespace ranktap::collector
