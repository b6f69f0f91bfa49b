// Runs on: see memory_limit.h.  May not: believe that a file is there.
#include "agent/core/memory_limit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ranktap::agent {
namespace {

std::string ReadFile(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char piece[1024];
  ssize_t got = 0;
  constexpr size_t kMost = 64 << 10;
  while (text.size() < kMost && (got = read(fd, piece, sizeof(piece))) > 0) {
    text.append(piece, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

// "max" and files that are not there are no limit.
uint64_t NumberIn(const std::string& path) {
  const std::string text = ReadFile(path);
  const bool is_number = !text.empty() && text[0] >= '0' && text[0] <= '9';
  return is_number ? std::strtoull(text.c_str(), nullptr, 10) : UINT64_MAX;
}

// The least limit of the group and of those above it, up to the one that the process sees as the
// root.
uint64_t LeastOf(const std::string& hierarchy, std::string group, const std::string& file) {
  uint64_t least = NumberIn(hierarchy + "/" + file);
  while (group.size() > 1) {
    least = std::min(least, NumberIn(hierarchy + group + "/" + file));
    group.resize(group.rfind('/'));
  }
  return least;
}

}  // namespace

uint64_t MemoryLimit(const std::string& proc, const std::string& groups) {
  const std::string text = ReadFile(proc);
  uint64_t least = UINT64_MAX;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    // hierarchy:controllers:group
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos || line.substr(second + 1, 1) != "/") continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string group(line.substr(second + 1));
    if (controllers.empty()) {
      least = std::min(least, LeastOf(groups, group, "memory.max"));
    } else if (controllers == "memory") {
      least = std::min(least, LeastOf(groups + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace ranktap::agent
