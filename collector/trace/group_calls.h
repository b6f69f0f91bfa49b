// Calls into process groups, as a rank entered them: what a dump of PyTorch's Flight Recorder
// holds.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct GroupCall {
  uint32_t group = 0;     // index into Trace::process_groups
  uint32_t function = 0;  // Dictionary::String: "all_reduce", "send"
  // Dictionary::String: "[[1024], [4, 8]]" and "Float, Long". 0: not told.
  uint32_t in_sizes = 0, out_sizes = 0, in_types = 0, out_types = 0;
  uint32_t stack = 0;      // Dictionary::String: "a.py(3): f;b.py(9): g", innermost first
  uint32_t peer = 0;       // of a send or recv: 1 + its number in the group; 0: not told
  uint64_t number = 0;     // among its group's collectives, or among its sends and recvs
  int64_t entered_ns = 0;  // CLOCK_REALTIME
  bool is_send = false, is_recv = false;
  bool is_open = false;  // nobody saw it end
};

// In the order of entry.
struct GroupCalls {
  bool is_dump = false;
  std::vector<GroupCall> list;
};

// Only dumps have them, so that they are kept beside the tables that every trace has.
inline void KeepGroupCalls(GroupCalls calls, Trace* trace) {
  trace->memo.Get<GroupCalls>([&calls] { return std::move(calls); });
}
inline const GroupCalls& GroupCallsOf(const Trace& trace) {
  return trace.memo.Get<GroupCalls>([] { return GroupCalls{}; });
}

}  // namespace ranktap::collector
