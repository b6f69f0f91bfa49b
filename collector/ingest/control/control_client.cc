#include "collector/ingest/control/control_client.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>

#include "collector/file/file_descriptor.h"
#include "collector/ingest/net/handshake.h"
#include "collector/ingest/net/peer.h"
#include "collector/ingest/net/public_socket.h"
#include "proto/frame.h"

namespace ranktap::collector {
namespace {

void AddOnce(std::string path, std::vector<std::string>* paths) {
  if (std::find(paths->begin(), paths->end(), path) == paths->end()) {
    paths->push_back(std::move(path));
  }
}

// PrivateSocket makes DIR/ranktap-XXXXXX/socket. A stranger's directory is not looked into.
void AddPrivateSockets(const char* parent, std::vector<std::string>* paths) {
  if (parent == nullptr || parent[0] != '/') return;
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("ranktap-")) continue;
    struct stat status {};
    const bool is_ours = ::lstat(entry.path().c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                         (status.st_uid == ::geteuid() || ::geteuid() == 0);
    const std::string socket = entry.path().string() + "/socket";
    if (is_ours && ::lstat(socket.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
      found.push_back(socket);
    }
  }
  std::sort(found.begin(), found.end());
  for (std::string& path : found) AddOnce(std::move(path), paths);
}

Result<FileDescriptor> Connect(const std::string& path, unsigned patience_seconds) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Failure{fmt::format("'{}' is not a socket's path: it is empty or too long", path)};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = patience_seconds, .tv_usec = 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return SystemFailure(fmt::format("{}: no collector answers there", path), errno);
  }
  const auto peer = CredentialsOf(socket.get());
  if (!peer || (peer->uid != 0 && peer->uid != ::geteuid())) {
    return Failure{fmt::format("{}: the collector there is another user's", path)};
  }
  return socket;
}

}  // namespace

std::vector<std::string> CandidateSockets() {
  std::vector<std::string> paths;
  if (const char* const named = ::getenv("RANKTAP_SOCKET"); named != nullptr && named[0] != '\0') {
    AddOnce(named, &paths);
  }
  AddOnce(PublicSocket::DefaultPath(), &paths);
  AddOnce("/run/ranktap/collector.sock", &paths);
  for (const char* const parent :
       std::array<const char*, 3>{::getenv("XDG_RUNTIME_DIR"), ::getenv("TMPDIR"), "/tmp"}) {
    AddPrivateSockets(parent, &paths);
  }
  return paths;
}

Result<v1::ControlReply> AskCollector(const std::string& path, const v1::ControlRequest& request,
                                      unsigned patience_seconds) {
  Result<FileDescriptor> socket = Connect(path, patience_seconds);
  if (!socket) return Failure{socket.message()};
  const auto frame = EncodeControl(proto::FrameType::kControl, request.SerializeAsString());
  for (std::span<const std::byte> left = frame; !left.empty();) {
    const ssize_t sent = ::send(socket->get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      return SystemFailure(fmt::format("{}: the collector takes no request", path), errno);
    }
    left = left.subspan(static_cast<size_t>(sent));
  }
  std::vector<std::byte> heard;
  for (;;) {
    const proto::FrameView answer = proto::DecodeFrame(heard);
    v1::ControlReply reply;
    if (answer.status == proto::FrameStatus::kComplete) {
      if (answer.header.type == proto::FrameType::kReport &&
          reply.ParseFromArray(answer.payload.data(), static_cast<int>(answer.payload.size()))) {
        return reply;
      }
      return Failure{
          fmt::format("{}: what answers there is not a collector of this release", path)};
    }
    if (answer.status != proto::FrameStatus::kNeedMore) {
      return Failure{fmt::format("{}: what answers there is not a collector", path)};
    }
    std::array<std::byte, 16384> buffer;
    const ssize_t size = ::recv(socket->get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return SystemFailure(fmt::format("{}: the collector does not answer", path), errno);
    }
    if (size == 0) {
      return Failure{fmt::format(
          "{}: the collector ended the conversation; is it of an older release?", path)};
    }
    heard.insert(heard.end(), buffer.begin(), buffer.begin() + size);
  }
}

}  // namespace ranktap::collector
