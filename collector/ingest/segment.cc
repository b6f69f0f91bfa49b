#include "collector/ingest/segment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace ranktap::collector {

Segment::Segment(FileDescriptor fd, std::string* why) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    *why = "the descriptor is not a memfd";
    return;
  }
  // Only memory files know seals: anything else fails here.
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    *why = "the memfd is not sealed against shrinking";
    return;
  }
  if (status.st_size <= 0 || static_cast<uint64_t>(status.st_size) > kMaxSegmentBytes) {
    *why = "the memfd's size is out of bounds";
    return;
  }
  bytes_ = static_cast<uint64_t>(status.st_size);
  fd_ = std::move(fd);
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
