// Removes the oldest runs below the root of `ranktap collect`. No run that a process is in, and
// nothing that is not a run. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

struct RunLimits {
  uint64_t age_ns = 0;  // 0: any
  uint64_t bytes = 0;   // of all runs, on the disk; 0: any
  bool any() const { return age_ns != 0 || bytes != 0; }
};

// What has been done under the limits, for `ranktap status`: written by one thread, read by
// another.
struct RunCleaning {
  RunLimits limits;
  std::atomic<uint64_t> runs_removed = 0, bytes_removed = 0;
  std::atomic<uint64_t> bytes_kept = 0;  // at the last look
};

// "200G", "500M", "1.5T", "64KiB", a bare number: bytes. nullopt: it is none.
std::optional<uint64_t> ParseBytes(std::string_view text);

// Runs that ended longer ago than the limit go first, then the oldest until the others fit. One
// sentence for each that went, or could not go.
std::vector<std::string> RemoveOldRuns(const std::string& root, uint64_t now_realtime_ns,
                                       RunCleaning* cleaning);

}  // namespace ranktap::collector
