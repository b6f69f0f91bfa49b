// How processes end that are not our children, and in which order: also those that end between two
// looks. Thread-compatible.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {

struct ProcessEnd {
  std::optional<int> wait_status;  // Linux 6.15 and newer tell it, and a zombie
  // Ended by SIGKILL: whether the kernel's OOM killer did it.
  std::optional<bool> was_out_of_memory;
  uint64_t seen_ns = 0;  // to have ended; CLOCK_MONOTONIC
};

// By pidfds, which the kernel makes readable at the end: of those that are, the list has the order.
class EndOrder {
 public:
  EndOrder();

  // Until the handle is closed.
  void Watch(pid_t pid, const FileDescriptor& handle) const;
  // Those that have ended since the last call, the first one first.
  std::vector<pid_t> Take() const;
  // Readable while Take has some.
  int handle() const { return order_.get(); }

 private:
  FileDescriptor order_;
};

FileDescriptor OpenPidfd(pid_t pid);

// As waitpid has it. `handle`: a pidfd of a process that has ended.
std::optional<int> WaitStatusOf(const FileDescriptor& handle);
// The same, and of a zombie, also without a pidfd.
std::optional<int> EndStatusOf(pid_t pid, const FileDescriptor& handle);

// Word `index` behind the name in /proc/PID/stat, the state being 0; 0 where there is none.
uint64_t StatWord(pid_t pid, int index);

}  // namespace ranktap::collector
