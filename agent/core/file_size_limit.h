// RLIMIT_FSIZE. The kernel answers a write beyond it, to a memfd too, with SIGXFSZ, which ends the
// program. So we ask first. Runs on: any thread that makes or writes a file.
// May not: run in a hook in steady state (it is a system call).
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <limits>

namespace ranktap::agent {

// The largest size in bytes that a file of this process may have now.
inline uint64_t LargestFile() {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<uint64_t>::max();
  }
  return limit.rlim_cur;
}

// Our descriptors could push the program over a limit below 64.
inline bool HasFewDescriptors() {
  rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 64;
}

}  // namespace ranktap::agent
