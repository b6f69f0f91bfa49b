// Closes what clients passed or connected, away from the server's thread: close() of a socket that
// lingers, or of one with such sockets in its queue, takes as long as its maker likes. Each user's
// are closed by a thread of its own, so that nobody waits for another's. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {

class Closer {
 public:
  Closer();
  // It leaves what has not been closed in kEndNs to the end of the process.
  ~Closer();
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  // Never waits.
  void Close(uid_t user, FileDescriptor descriptor);
  // How many of the user's are not closed yet.
  size_t waiting(uid_t user) const;

 private:
  struct State;
  static void Work(const std::shared_ptr<State>& state, uid_t user);
  std::shared_ptr<State> state_;
};

}  // namespace ranktap::collector
