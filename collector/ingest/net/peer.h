// Who is at the other end of a socket, and how it ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {

struct PeerCredentials {
  uid_t uid = 0;
  pid_t pid = 0;          // in our pid namespace; 0: not visible from here
  bool is_spool = false;  // not the process itself, which has ended, but what it left behind
};

// As the kernel saw the peer when it connected.
std::optional<PeerCredentials> CredentialsOf(int socket);

// A pidfd of the process that connected: it becomes readable when that process is gone, whoever
// else holds the socket. Invalid where the kernel cannot tell.
FileDescriptor OpenPidfd(int socket, pid_t pid);

// True once the process has ended.
bool HasEnded(int pidfd);

// "exited with status 1", "killed by signal 9 (SIGKILL)"; empty when the kernel does not say (it
// does while the process is a zombie, and since Linux 6.15 also after it was reaped).
std::string DescribeEnd(int pidfd, pid_t pid);

// Whether the process at the other end of `socket` is below `ancestor`: a child of it, or of one
// below it, as /proc tells now. False for one that has ended, or whose parent ended and left it to
// another.
bool DescendsFrom(int socket, pid_t pid, pid_t ancestor);

// From a wait status: the same words.
std::string DescribeWaitStatus(int status);

}  // namespace ranktap::collector
