// The blocks that PyTorch's CPU allocator gives out and takes back, from the reporter that it calls
// for each block: c10::ProfiledCPUMemoryReporter, reached through libc10's own table.
// Runs on: threads that hold the interpreter's lock.  May not: be called before torch is loaded.
#pragma once

#include "proto/events.h"

namespace ranktap::agent {

// Finds libc10 and redirects its calls, once. False: this PyTorch has no such reporter.
[[nodiscard]] bool InstallMemoryHooks();

// From now on blocks are recorded, as marks in `domain`; 0: no longer.
void WatchMemory(proto::ArenaRef domain);

// From now on allocations that fail are recorded, as marks called `name` in `domain`, whether
// blocks are or not. False: this PyTorch has no such reporter.
[[nodiscard]] bool WatchOutOfMemory(proto::ArenaRef domain, proto::ArenaRef name);

}  // namespace ranktap::agent
