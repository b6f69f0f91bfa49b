// Parses /proc/self/maps in a small buffer. By plain system calls: open, read and close are points
// at which a thread is cancelled, and it must not be in here.
// Runs on: user threads.  May not: allocate; leave a descriptor behind; be a cancellation point.
#include "agent/stacks/stack_bounds.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ranktap::agent::stacks {
namespace {

class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}

  // The next line without its end, cut to the buffer's size; nullptr at the end.
  char* Next() {
    while (true) {
      char* const begin = buffer_ + used_;
      if (auto* end = static_cast<char*>(std::memchr(begin, '\n', filled_ - used_))) {
        *end = '\0';
        used_ = static_cast<size_t>(end + 1 - buffer_);
        return begin;
      }
      if (!Refill()) return nullptr;
    }
  }

 private:
  bool Refill() {
    std::memmove(buffer_, buffer_ + used_, filled_ - used_);
    filled_ -= used_;
    used_ = 0;
    // A longer line than the buffer: its end is a path's, which nobody needs.
    if (filled_ == sizeof(buffer_)) filled_ = sizeof(buffer_) / 2;
    const ssize_t got = syscall(SYS_read, fd_, buffer_ + filled_, sizeof(buffer_) - filled_);
    if (got <= 0) return false;
    filled_ += static_cast<size_t>(got);
    return true;
  }

  int fd_;
  size_t used_ = 0, filled_ = 0;
  char buffer_[2048];
};

const char* ParseHex(const char* text, uint64_t* value) {
  *value = 0;
  for (;; ++text) {
    const char c = *text;
    if (c >= '0' && c <= '9') {
      *value = *value * 16 + static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      *value = *value * 16 + static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return text;
    }
  }
}

}  // namespace

StackBounds FindStackBounds(uint64_t address) {
  StackBounds bounds;
  const auto fd =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return bounds;
  Lines lines(fd);
  while (const char* line = lines.Next()) {
    uint64_t low = 0, high = 0;
    const char* rest = ParseHex(line, &low);
    if (*rest != '-') continue;
    rest = ParseHex(rest + 1, &high);
    if (address < low || address >= high) continue;
    if (std::strncmp(rest, " rw", 3) != 0) break;
    constexpr uint64_t kRoomToGrow = 8u << 20;
    const bool grows = std::strstr(rest, "[stack]") != nullptr;
    bounds = {.low = grows ? std::min(low, high - kRoomToGrow) : low, .high = high};
    break;
  }
  syscall(SYS_close, fd);
  return bounds;
}

}  // namespace ranktap::agent::stacks
