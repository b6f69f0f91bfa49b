// The user at the other end of a socket, as far as this user namespace can tell.
// Runs on: the sender thread.  May not: log to the job, keep a descriptor open.
#include "agent/transport/server_trust.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "agent/core/own_descriptor.h"

namespace ranktap::agent {
namespace {

// Empty where it cannot be read.
template <size_t kSize>
const char* ReadText(const char* path, std::array<char, kSize>* text) {
  OwnDescriptor file;
  file.Adopt(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.get() < 0 ? 0 : read(file.get(), text->data(), kSize - 1);
  (*text)[size > 0 ? static_cast<size_t>(size) : 0] = 0;
  file.Close();
  return text->data();
}

// A namespace that maps every number has no strangers; the first one of the machine is such.
bool MapsEveryUser() {
  std::array<char, 128> map{};
  const char* const text = ReadText("/proc/self/uid_map", &map);
  return text[0] == 0 || std::strstr(text, "4294967295") != nullptr;
}

uid_t NumberOfStrangers() {
  std::array<char, 32> number{};
  const char* const text = ReadText("/proc/sys/kernel/overflowuid", &number);
  return text[0] == 0 ? 65534 : static_cast<uid_t>(std::strtoul(text, nullptr, 10));
}

bool IsFromOutside(const std::string& path) {
  const uid_t stranger = NumberOfStrangers();
  struct stat of_socket {
  }, of_directory{};
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || stat(path.c_str(), &of_socket) != 0 ||
      stat(path.substr(0, slash + 1).c_str(), &of_directory) != 0) {
    return false;
  }
  return of_socket.st_uid == stranger && of_directory.st_uid == stranger &&
         (of_directory.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

bool IsTrustedServer(int socket, const std::string& path) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == 0 || peer.uid == geteuid()) return true;
  return !MapsEveryUser() && peer.uid == NumberOfStrangers() && IsFromOutside(path);
}

}  // namespace ranktap::agent
