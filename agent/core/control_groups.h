// The process's control groups, where the kernel shows them.
// Runs on: the starting thread.  May not: run in a hook (allocates, reads files).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ranktap::agent {

// At most 64 KiB; empty: the file is not there.
std::string ReadWholeFile(const std::string& path);

struct ControlGroup {
  std::string folder;  // without the last slash
  bool is_second_version = false;
};

// Its own group and those above it, up to the one that the process sees as the root; the nearest
// first. In version 1 of the hierarchy that has `controller`. `proc` and `groups` are where the
// kernel shows them.
std::vector<ControlGroup> ControlGroupsOf(std::string_view controller,
                                          const std::string& proc = "/proc/self/cgroup",
                                          const std::string& groups = "/sys/fs/cgroup");

}  // namespace ranktap::agent
