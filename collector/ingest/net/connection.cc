#include "collector/ingest/net/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collector/ingest/net/handshake.h"
#include "ranktap/v1/control.pb.h"

namespace ranktap::collector {
namespace {

// A handful of acks and level changes; a peer that has not read those is not reading.
constexpr size_t kMaxOutputBytes = 64u << 10;
// The kernel's limit: those that found no room here would be closed by it, on this thread.
constexpr int kMaxDescriptors = 253;

const char* Describe(proto::FrameStatus status) {
  switch (status) {
    case proto::FrameStatus::kBadMagic:
      return "not a frame";
    case proto::FrameStatus::kBadVersion:
      return "unknown frame version";
    case proto::FrameStatus::kTooLarge:
      return "frame too large";
    case proto::FrameStatus::kBadHeaderCrc:
      return "damaged frame header";
    case proto::FrameStatus::kBadPayloadCrc:
      return "damaged frame";
    case proto::FrameStatus::kBadRange:
      return "impossible positions";
    default:
      return "";
  }
}

}  // namespace

Connection::~Connection() {
  closer_->Close(peer_.uid, std::move(descriptor_));
  closer_->Close(peer_.uid, std::move(socket_));
}

void Connection::TakePassed(int fd) {
  FileDescriptor passed(fd);
  if (!passed_ && session == 0) {
    descriptor_ = std::move(passed);
  } else {
    passed_too_many_ = true;
    closer_->Close(peer_.uid, std::move(passed));
  }
  passed_ = true;
}

// Takes passed descriptors with the bytes.
ssize_t Connection::Receive(std::span<std::byte> into) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec part{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return size;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      TakePassed(fd);
    }
  }
  return size;
}

Connection::ReadStatus Connection::TakeFrames(std::span<const std::byte> bytes,
                                              const TakeFrame& take, size_t* used) {
  *used = 0;
  for (;;) {
    const auto rest = bytes.subspan(*used);
    const proto::FrameView frame = proto::DecodeFrame(rest);
    if (frame.status == proto::FrameStatus::kNeedMore) {
      const bool has_header = rest.size() >= sizeof(proto::FrameHeader);
      frame_bytes_ = has_header ? sizeof(proto::FrameHeader) + frame.header.payload_bytes : 0;
      return ReadStatus::kOpen;
    }
    if (frame.status != proto::FrameStatus::kComplete) {
      problem_ = Describe(frame.status);
      return ReadStatus::kBadFrame;
    }
    ++frames_;
    *used += frame.consumed;
    if (!take(frame, rest.first(frame.consumed))) {
      problem_ = "frame not acceptable";
      return ReadStatus::kBadFrame;
    }
    if (closing) return ReadStatus::kOpen;
  }
}

Connection::ReadStatus Connection::Read(std::span<std::byte> scratch, size_t budget,
                                        bool others_wait, const TakeFrame& take, bool* drained) {
  *drained = false;
  for (size_t total = 0; total < budget && !closing;) {
    // Room for no more than the rest of a frame that has begun: what many connections hold of half
    // frames is then their sizes, not what a vector grows to.
    const size_t room =
        frame_bytes_ > input_.size() ? frame_bytes_ - input_.size() : scratch.size();
    const ssize_t size = Receive(scratch.first(std::min(room, scratch.size())));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      *drained = true;
      return ReadStatus::kOpen;
    }
    if (size <= 0) {
      *drained = true;
      return ReadStatus::kClosed;
    }
    if (passed_too_many_) {
      problem_ = "more than one descriptor was passed";
      return ReadStatus::kBadFrame;
    }
    total += static_cast<size_t>(size);
    std::span<const std::byte> bytes = scratch.first(static_cast<size_t>(size));
    const bool has_input = !input_.empty();
    if (has_input) {
      input_.insert(input_.end(), bytes.begin(), bytes.end());
      bytes = input_;
    }
    size_t used = 0;
    const ReadStatus status = TakeFrames(bytes, take, &used);
    if (status != ReadStatus::kOpen) return status;
    if (has_input) {
      input_.erase(input_.begin(), input_.begin() + static_cast<ptrdiff_t>(used));
      if (input_.empty()) {
        std::vector<std::byte>().swap(input_);
        frame_bytes_ = 0;
        if (others_wait) return ReadStatus::kOpen;
      }
    } else {
      const auto left = bytes.subspan(used);
      input_.reserve(left.empty() ? 0 : std::max(frame_bytes_, left.size()));
      input_.assign(left.begin(), left.end());
    }
  }
  return ReadStatus::kOpen;
}

bool Connection::Send(std::span<const std::byte> frame) {
  if (output_.size() + frame.size() > kMaxOutputBytes) return false;
  output_.insert(output_.end(), frame.begin(), frame.end());
  return Flush();
}

bool Connection::SendReply(std::span<const std::byte> frame) {
  if (!output_.empty()) return false;
  output_.assign(frame.begin(), frame.end());
  return Flush();
}

bool Connection::SendAck(uint64_t frames) {
  ack_ = frames;
  return Flush();
}

bool Connection::Flush() {
  for (;;) {
    if (output_.empty() && ack_ != acked_) {
      v1::Ack ack;
      ack.set_frames(ack_);
      output_ = EncodeControl(proto::FrameType::kAck, ack.SerializeAsString());
      acked_ = ack_;
    }
    if (output_.empty()) return true;
    const ssize_t sent =
        ::send(socket_.get(), output_.data(), output_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    output_.erase(output_.begin(), output_.begin() + sent);
  }
}

}  // namespace ranktap::collector
