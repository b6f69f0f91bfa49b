// How much memory the process's control group may have, so that the rings of a small container are
// small: what they hold is charged to it.
// Runs on: the starting thread.  May not: run in a hook (allocates, reads files).
#pragma once

#include <cstdint>
#include <string>

namespace ranktap::agent {

// In bytes, the least of its own and those above it, version 1 or 2; UINT64_MAX: none is known.
// `proc` and `groups` are where the kernel shows them.
uint64_t MemoryLimit(const std::string& proc = "/proc/self/cgroup",
                     const std::string& groups = "/sys/fs/cgroup");

}  // namespace ranktap::agent
