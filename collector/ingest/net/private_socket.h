// A listening Unix socket in a directory of its own that only this user can reach; root's can be
// reached by all, since programs that root starts become other users: its server has to look who
// comes. Removed with the object; what a process that was killed left behind, by the next one of
// the same user.
#pragma once

#include <string>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"

namespace ranktap::collector {

class PrivateSocket {
 public:
  // In $XDG_RUNTIME_DIR, $TMPDIR or /tmp: the first whose path leaves room for a socket address
  // and, for root's, that everybody may enter.
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

// Removes PrivateSocket's directories in `parent` in which nobody listens. Only this user's, at
// least a minute old (who makes one listens a moment later); what else is in one stays, and so does
// it.
void RemoveDeadSockets(const std::string& parent);

// Connects to `path`; false when nobody listens there.
bool CanConnect(const std::string& path);

}  // namespace ranktap::collector
