// Runs on: see control_groups.h.  May not: believe that a file is there.
#include "agent/core/control_groups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace ranktap::agent {
namespace {

// "cpu" of "cpu,cpuacct"
bool HasController(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == wanted) return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

void AddWithThoseAbove(const std::string& hierarchy, std::string group, bool is_second_version,
                       std::vector<ControlGroup>* to) {
  while (group.size() > 1) {
    to->push_back({hierarchy + group, is_second_version});
    group.resize(group.rfind('/'));
  }
  to->push_back({hierarchy, is_second_version});
}

}  // namespace

std::string ReadWholeFile(const std::string& path) {
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

std::vector<ControlGroup> ControlGroupsOf(std::string_view controller, const std::string& proc,
                                          const std::string& groups) {
  std::vector<ControlGroup> found;
  const std::string text = ReadWholeFile(proc);
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
      AddWithThoseAbove(groups, group, true, &found);
    } else if (HasController(controllers, controller)) {
      AddWithThoseAbove(groups + "/" + std::string(controllers), group, false, &found);
    }
  }
  return found;
}

}  // namespace ranktap::agent
