// The identity of this process: v1.Process, read from /proc.
// Runs on: the thread that starts the agent.  May not: run in a hook (it opens files).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ranktap::agent {

struct ProcessInfo {
  uint32_t pid, parent_pid, uid;
  std::vector<uint32_t> ns_pids;  // outermost namespace first
  std::string host, boot_id, executable;
  uint64_t start_ticks;        // since boot, in clock ticks
  uint64_t start_realtime_ns;  // of the process; 0 when /proc does not tell
  std::vector<std::string> command_line;
};

// Fields that cannot be read stay empty or 0. With `redact`, secrets are replaced (proto/redact.h).
ProcessInfo ReadProcessInfo(bool redact);

}  // namespace ranktap::agent
