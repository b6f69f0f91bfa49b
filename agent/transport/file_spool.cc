// Runs on: see file_spool.h.  May not: block on anything but the file system, and only on this
// thread.
#include "agent/transport/file_spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/core/file_size_limit.h"
#include "agent/core/log.h"
#include "proto/spool.h"

namespace ranktap::agent {
namespace {

constexpr uint64_t kLookAtSpaceEvery = 16u << 20;
// An account of each of 1,024 writers is some 200 bytes.
constexpr uint64_t kLastWordsBytes = 256u << 10;
// The program may close our descriptors between any two calls; this often in a row, it wins.
constexpr int kTriesAgainstClosing = 16;
constexpr uint64_t kFreeShare = 20;  // one part in so many of the file system stays free

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// The directory, if it is this user's and nobody else may enter; made when missing. -1: errno says
// why not. A stranger may have made the path first.
int OpenDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return -1;
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat status;
  if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 077) == 0) {
    return fd;
  }
  close(fd);
  errno = EPERM;
  return -1;
}

}  // namespace

FileSpool::FileSpool(Setup setup) : setup_(std::move(setup)) {
  // The usual batch; one that is longer makes room for the next.
  constexpr size_t kQueuedBytes = 512u << 10;
  if (enabled()) queued_.reserve(kQueuedBytes);
}

bool FileSpool::MakeFile(int directory) {
  ++next_number_;
  const int fd =
      openat(directory, name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    name_.clear();
    return false;
  }
  if (fchmod(fd, 0600) != 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    unlinkat(directory, name_.c_str(), 0);
    name_.clear();
    return false;
  }
  file_.Adopt(fd);
  end_ = 0;
  looked_at_ = 0;
  return file_.get() >= 0;
}

// False: there is none, or somebody else has taken it away or has it locked.
bool FileSpool::Reopen() {
  if (name_.empty()) return false;
  for (int i = 0; i < kTriesAgainstClosing; ++i) {
    errno = 0;
    const int directory = OpenDirectory(setup_.directory);
    const int fd =
        directory < 0 ? -1 : openat(directory, name_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    const bool is_ours = fd >= 0 && file_.IsSameFile(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool closed = errno == EBADF;
    if (directory >= 0) close(directory);
    if (is_ours) file_.Adopt(fd);
    if (is_ours && file_.get() >= 0) return true;
    if (fd >= 0 && !is_ours && !closed) close(fd);
    if (!is_ours && !closed) break;
  }
  name_.clear();
  end_ = 0;
  return false;
}

bool FileSpool::Open(std::string_view hello) {
  if (!enabled()) return false;
  if (open()) return true;
  // Before there is a descriptor that a failed allocation would leave behind. A number may be
  // taken: by this session before an exec, which begins a new session, never.
  std::string name = proto::SpoolFileName(Hex(setup_.session), next_number_);
  path_ = setup_.directory + "/" + name;
  name_ = std::move(name);
  const int directory = OpenDirectory(setup_.directory);
  const bool made = directory >= 0 && MakeFile(directory);
  const int error = errno;
  if (directory >= 0) close(directory);
  if (!made) {
    name_.clear();
    if (!std::exchange(told_, true)) {
      Log("no spool in " + setup_.directory, std::strerror(error));
    }
    return false;
  }
  Discard();
  Put({.type = proto::FrameType::kHello}, std::as_bytes(std::span(hello)));
  if (Commit() == Stored::kNow) return true;
  Remove();
  return false;
}

void FileSpool::Put(const proto::FrameFields& fields, std::span<const std::byte> payload) {
  const proto::FrameHeader header = proto::MakeFrameHeader(fields, payload);
  const size_t bytes = queued_.size() + sizeof(header) + payload.size();
  // At once: half a frame in the queue would be half a frame in the file.
  if (bytes > queued_.capacity()) queued_.reserve(2 * bytes);
  queued_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  queued_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
}

bool FileSpool::HasRoom(size_t bytes, Room room) {
  const uint64_t kept = room == Room::kEvents ? kLastWordsBytes : 0;
  if (end_ + bytes + kept > std::min(setup_.limit_bytes, LargestFile())) return false;
  if (room == Room::kLastWords) return true;
  if (end_ != 0 && end_ - looked_at_ < kLookAtSpaceEvery) return true;
  looked_at_ = end_;
  struct statvfs space;
  return fstatvfs(file_.get(), &space) == 0 &&
         space.f_bavail > space.f_blocks / kFreeShare + bytes / std::max(space.f_frsize, 1ul);
}

bool FileSpool::Write(Room room) {
  const bool written = WriteQueued(room);
  Discard();
  return written;
}

bool FileSpool::WriteQueued(Room room) {
  const std::string_view bytes = queued_;
  if (bytes.empty()) return true;
  if (!open() || !HasRoom(bytes.size(), room)) return false;
  const int fd = file_.get();
  for (size_t written = 0; written < bytes.size();) {
    const ssize_t more = pwrite(fd, bytes.data() + written, bytes.size() - written,
                                static_cast<off_t>(end_ + written));
    // The next Write overwrites the bytes beyond end_, or they are the torn tail.
    if (more <= 0) return false;
    written += static_cast<size_t>(more);
  }
  end_ += bytes.size();
  return true;
}

std::span<const std::byte> FileSpool::Read(uint64_t offset, size_t bytes) {
  constexpr size_t kLargest = sizeof(proto::FrameHeader) + proto::kMaxPayloadBytes;
  if (!open() || offset >= end_) return {};
  read_.resize(std::min<uint64_t>(std::max(bytes, kLargest), end_ - offset));
  size_t got = 0;
  int tries = kTriesAgainstClosing;
  while (got < read_.size() && open()) {
    const ssize_t more = pread(file_.get(), read_.data() + got, read_.size() - got,
                               static_cast<off_t>(offset + got));
    if (more < 0 && errno == EBADF && --tries > 0) continue;
    if (more <= 0) break;
    got += static_cast<size_t>(more);
  }
  return std::as_bytes(std::span(read_.data(), got));
}

void FileSpool::Remove() {
  // Only while the name is still that of our file: the lock is ours, so nobody adopted it.
  if (open()) unlink(path_.c_str());
  file_.Close();
  name_.clear();
  end_ = 0;
}

}  // namespace ranktap::agent
