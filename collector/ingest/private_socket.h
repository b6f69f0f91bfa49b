// A listening Unix socket in a directory of its own, 0700, that only this user can reach. Removed
// with the object.
#pragma once

#include <string>

#include "collector/trace/file_descriptor.h"
#include "collector/trace/result.h"

namespace ranktap::collector {

class PrivateSocket {
 public:
  // In $XDG_RUNTIME_DIR, $TMPDIR or /tmp: the first whose path leaves room for a socket address.
  static Result<PrivateSocket> Create();
  PrivateSocket(PrivateSocket&&) = default;
  PrivateSocket& operator=(PrivateSocket&&) = default;
  ~PrivateSocket();

  const std::string& path() const { return path_; }
  FileDescriptor TakeListener() { return std::move(listener_); }

 private:
  PrivateSocket() = default;
  std::string directory_, path_;
  FileDescriptor listener_;
};

// Connects to `path`; false when nobody listens there.
bool CanConnect(const std::string& path);

}  // namespace ranktap::collector
