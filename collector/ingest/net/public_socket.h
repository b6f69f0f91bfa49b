// The socket of `ranktap collect`: at a path that programs are told, held by one collector at a
// time. A lock file beside it says who; a socket that a killed collector left is replaced.
#pragma once

#include <string>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"

namespace ranktap::collector {

class PublicSocket {
 public:
  // Makes the socket's directory where it is missing: 0700, or 0755 when all users are served. The
  // directory must be this user's (or root's, when that is us). Fails when another collector
  // listens there.
  static Result<PublicSocket> Create(const std::string& path, bool all_users);
  PublicSocket(PublicSocket&&) = default;
  // Removes the socket; the lock file stays, empty of meaning without its lock.
  ~PublicSocket();

  const std::string& path() const { return path_; }
  FileDescriptor TakeListener() { return std::move(listener_); }

  // /run/ranktap/collector.sock for root, $XDG_RUNTIME_DIR/ranktap/collector.sock for others.
  static std::string DefaultPath();

 private:
  PublicSocket() = default;
  std::string path_;
  FileDescriptor lock_, listener_;
};

}  // namespace ranktap::collector
