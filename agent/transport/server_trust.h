// Whether the server behind a socket may have our names and rings.
// Runs on: the sender thread.  May not: log to the job, keep a descriptor open.
#pragma once

#include <string>

namespace ranktap::agent {

// Root and this process's own user are trusted: a stranger may have made the path. In a user
// namespace that does not know the root of the machine, the kernel calls every user from outside by
// one number (/proc/sys/kernel/overflowuid). Such a server is trusted where the socket and its
// directory are from outside too and no other user may write into the directory: who made the
// container put it there. `socket` is connected to `path`.
bool IsTrustedServer(int socket, const std::string& path);

}  // namespace ranktap::agent
