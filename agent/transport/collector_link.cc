// A non-blocking Unix stream socket.
// Runs on: the sender thread.  May not: raise SIGPIPE; use write() (a reused descriptor number may
// be a file of the program's).
#include "agent/transport/collector_link.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/transport/server_trust.h"

namespace ranktap::agent {
namespace {

constexpr size_t kLargestFrame = sizeof(proto::FrameHeader) + proto::kMaxPayloadBytes;
constexpr size_t kReceivedAtOnce = 4096;

}  // namespace

CollectorLink::CollectorLink() {
  out_.reserve(kMaxQueuedBytes + kLargestFrame);
  in_.reserve(kLargestFrame + kReceivedAtOnce);
}

bool CollectorLink::Connect(const std::string& path) {
  Drop();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  socket_.Adopt(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = socket_.get();
  // EAGAIN: the collector's backlog is full; the caller tries again.
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      !IsTrustedServer(fd, path)) {
    const int error = errno;
    socket_.Close();
    errno = error;
    return false;
  }
  connected_ = true;
  ForgetCounts();
  return true;
}

void CollectorLink::Drop() {
  socket_.Close();
  connected_ = false;
  out_.clear();
  sent_ = 0;
  pass_fd_ = -1;
  in_.clear();
  parsed_ = 0;
}

void CollectorLink::CloseInForkChild() { socket_.CloseInForkChild(); }

void CollectorLink::Put(const proto::FrameFields& fields, std::span<const std::byte> payload) {
  const proto::FrameHeader header = proto::MakeFrameHeader(fields, payload);
  const size_t bytes = sizeof(header) + payload.size();
  if (sent_ == out_.size() || out_.size() + bytes > out_.capacity()) {
    out_.erase(0, std::exchange(sent_, 0));
  }
  // At once: half a frame in the queue would break the connection.
  if (out_.size() + bytes > out_.capacity()) out_.reserve(2 * out_.size() + bytes);
  out_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  out_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  ++frames_queued_;
}

void CollectorLink::PutWithDescriptor(const proto::FrameFields& fields,
                                      std::span<const std::byte> payload, int descriptor) {
  pass_fd_ = descriptor;
  Put(fields, payload);
}

pollfd CollectorLink::WaitingFor() const {
  const auto events = static_cast<short>(unsent_bytes() > 0 ? POLLIN | POLLOUT : POLLIN);
  return {.fd = socket_.get(), .events = events, .revents = 0};
}

bool CollectorLink::Exchange() {
  const int fd = socket_.get();
  // Received first: after a hang-up there may still be an ack to read.
  const bool ok = fd >= 0 && ReceiveSome(fd) && SendSome(fd);
  if (!ok) Drop();
  return ok;
}

bool CollectorLink::SendSome(int fd) {
  while (unsent_bytes() > 0) {
    iovec part{.iov_base = out_.data() + sent_, .iov_len = out_.size() - sent_};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (pass_fd_ >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &pass_fd_, sizeof(int));
    }
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN;
    pass_fd_ = -1;
    sent_ += static_cast<size_t>(sent);
    bytes_sent_ += static_cast<uint64_t>(sent);
  }
  return true;
}

bool CollectorLink::ReceiveSome(int fd) {
  in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(parsed_));
  parsed_ = 0;
  std::array<std::byte, kReceivedAtOnce> buffer;
  while (true) {
    const ssize_t received = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (received > 0) {
      in_.insert(in_.end(), buffer.begin(), buffer.begin() + received);
    } else if (received == 0) {
      return false;
    } else {
      // Nothing that does not wait is interrupted; a filter that says so would say it for ever.
      return errno == EAGAIN;
    }
    if (in_.size() > proto::kMaxPayloadBytes) return true;  // parse before taking more
  }
}

proto::FrameView CollectorLink::NextFrame() {
  const proto::FrameView view = proto::DecodeFrame(std::span(in_).subspan(parsed_));
  parsed_ += view.consumed;
  return view;
}

}  // namespace ranktap::agent
