// A descriptor of ours in somebody else's process. The program may close it without knowing, and be
// given its number for a file of its own: so it is moved out of the way, and looked at again each
// time before it is used or closed.
// Runs on: the starting thread, the sender; CloseInForkChild in a fork child.  May not: be assumed
// to be open.
#pragma once

#include <sys/types.h>

namespace ranktap::agent {

class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  ~OwnDescriptor() { Close(); }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  // Takes over `fd`, under a number of at least 512 where the limits allow it.
  void Adopt(int fd);
  // The number, or -1 when it is no longer what was adopted.
  int get() const;
  // `fd` is of the file that was adopted, whether or not that is open still.
  bool IsSameFile(int fd) const;
  // Only if it is still ours.
  void Close();
  // Async-signal-safe: a child's copy is ours if the parent's was.
  void CloseInForkChild();

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace ranktap::agent
