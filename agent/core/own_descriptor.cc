// Runs on: see own_descriptor.h.  May not: use write() on a socket.
#include "agent/core/own_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ranktap::agent {
namespace {

bool IsSame(int fd, dev_t device, ino_t inode) {
  struct stat status;
  return fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

}  // namespace

void OwnDescriptor::Adopt(int fd) {
  constexpr int kLowest = 512;
  Close();
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kLowest);
  fd_ = moved < 0 ? fd : moved;
  // Between the two calls the program may have closed the low number and opened something.
  if (moved >= 0 && IsSame(fd, device_, inode_)) close(fd);
}

bool OwnDescriptor::IsSameFile(int fd) const { return IsSame(fd, device_, inode_); }

int OwnDescriptor::get() const { return fd_ >= 0 && IsSame(fd_, device_, inode_) ? fd_ : -1; }

void OwnDescriptor::Close() {
  if (const int fd = get(); fd >= 0) close(fd);
  fd_ = -1;
}

void OwnDescriptor::CloseInForkChild() { Close(); }

}  // namespace ranktap::agent
