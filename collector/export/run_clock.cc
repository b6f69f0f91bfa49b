#include "collector/export/run_clock.h"

#include <algorithm>

namespace ranktap::collector {

int64_t RealtimeOffset(const Run& run, const Trace& trace) {
  const std::string& boot = trace.hello.process().boot_id();
  if (boot.empty()) return trace.realtime_offset_ns;
  for (const Trace& other : run.traces) {
    if (other.has_clock && other.hello.process().boot_id() == boot) return other.realtime_offset_ns;
  }
  return trace.realtime_offset_ns;
}

int64_t FirstRealtime(const Run& run) {
  int64_t first = INT64_MAX;
  for (const Trace& trace : run.traces) {
    if (trace.first_ns != 0 || trace.last_ns != 0) {
      first = std::min(first, trace.first_ns + RealtimeOffset(run, trace));
    }
  }
  return first == INT64_MAX ? 0 : first;
}

}  // namespace ranktap::collector
