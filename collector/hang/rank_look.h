// One look at a rank from outside: whether its main thread ran since the last one, and, where that
// is asked for, its stacks and what it, its other threads and its children got done. Stops nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/hang/rank_children.h"
#include "collector/stacks/cuda_calls.h"
#include "collector/stacks/process_stacks.h"

namespace ranktap::collector {

// Counters that only grow while the rank gets something done. Not of our own threads in it.
struct RankWork {
  uint64_t bytes = 0;       // read and written, its threads
  uint64_t faults = 0;      // pages, major and minor
  uint64_t others_cpu = 0;  // of its other threads, in clock ticks
  uint64_t children_cpu = 0, children_bytes = 0;
  uint64_t work_ended = 0;  // see CudaState
  bool operator==(const RankWork&) const = default;
};

// kUnknown: it got no processor while it was looked at, or does not run.
enum class StackMotion : uint8_t { kUnknown, kStays, kChanges };

struct RankLook {
  uint32_t rank = 0;
  pid_t pid = 0;
  char state = '?';       // of the main thread, as /proc/PID/stat has it; '?': it has gone
  uint64_t cpu_ns = 0;    // of the main thread
  uint64_t queue_ns = 0;  // that it was ready to run and others ran
  uint64_t sleeps = 0;    // times it gave the processor up by itself
  pid_t tracer = 0;
  // The CUDA call that its main thread is inside of, and how long; empty: none, or nobody knows.
  std::string cuda_call;
  uint64_t cuda_call_ns = 0;
  uint64_t work_ended = 0;
  bool is_full = false;  // the following are filled in
  RankWork work;
  ProcessStacks stacks;
  std::vector<ProcessStacks> workers;  // of children that run Python
  std::vector<EndedChild> ended_children;
  StackMotion motion = StackMotion::kUnknown;  // a main thread that runs; kChanges: or has no GIL
  bool is_in_torch = false;                    // blocked in a lock below PyTorch's own native code
};

// Some 50 us.
RankLook GlanceAt(uint32_t rank, pid_t pid, CudaStateReader* cuda);
// Some milliseconds; of a rank that runs while others have the processors, 50.
RankLook LookAt(uint32_t rank, pid_t pid, CudaStateReader* cuda);

// Null: there is none that can be read.
const ThreadStack* MainThreadOf(const ProcessStacks& stacks);

}  // namespace ranktap::collector
