// What PyTorch's CPU allocator gives out and takes back, from the reporter that it calls for each
// block: c10::ProfiledCPUMemoryReporter, reached through libc10's own table.
// Runs on: threads that hold the interpreter's lock.  May not: be called before torch is loaded.
#pragma once

#include "proto/events.h"

namespace ranktap::agent {

// Finds libc10 and redirects its calls, once. False: this PyTorch has no such reporter.
[[nodiscard]] bool InstallMemoryHooks();

// From now on blocks are recorded, as marks in `domain`; 0: no longer.
void WatchMemory(proto::ArenaRef domain, proto::ArenaRef out_of_memory);

}  // namespace ranktap::agent
