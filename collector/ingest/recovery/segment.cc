#include "collector/ingest/recovery/segment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "proto/ring.h"

namespace ranktap::collector {

Segment::Segment(FileDescriptor fd, std::string* why, Closer* closer, uid_t user)
    : closer_(closer), user_(user) {
  const char* const reason = WhyNot(fd.get(), &bytes_);
  if (reason == nullptr) {
    fd_ = std::move(fd);
    return;
  }
  *why = reason;
  if (closer_ != nullptr) closer_->Close(user_, std::move(fd));
}

Segment::~Segment() {
  if (closer_ != nullptr) closer_->Close(user_, std::move(fd_));
}

const char* Segment::WhyNot(int fd, uint64_t* bytes) {
  // Only memory files know seals. Asked before fstat, which waits for the client where the file is
  // of a file system that the client serves.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return "the descriptor is not a memfd";
  if ((seals & F_SEAL_SHRINK) == 0) return "the memfd is not sealed against shrinking";
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return "the descriptor is not a memfd";
  if (status.st_size <= 0 || static_cast<uint64_t>(status.st_size) > kMaxSegmentBytes) {
    return "the memfd's size is out of bounds";
  }
  *bytes = static_cast<uint64_t>(status.st_size);
  return nullptr;
}

bool Segment::SaysSpooled() const {
  uint32_t spooled = 0;
  const uint64_t at =
      offsetof(proto::SegmentHeader, last_words) + offsetof(proto::LastWords, spooled);
  return ReadAt(at, std::as_writable_bytes(std::span(&spooled, 1))) && spooled != 0;
}

bool Segment::ReadAt(uint64_t offset, std::span<std::byte> into) const {
  if (offset > bytes_ || into.size() > bytes_ - offset) return false;
  while (!into.empty()) {
    const ssize_t size = ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    into = into.subspan(static_cast<size_t>(size));
    offset += static_cast<uint64_t>(size);
  }
  return true;
}

}  // namespace ranktap::collector
