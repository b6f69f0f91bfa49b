// The place in the program that a call came from: the calling thread's stack as one arena entry.
//
//   event.stack = CaptureStack(*thread, StackSite::kLaunch, hint);
//
// Runs on: CaptureStack on user threads, the rest on the arming thread and the drain thread.  May
// not: in CaptureStack allocate or wait; a thread's first stack reads /proc/self/maps, and a frame
// seen for the first time costs two system calls and a few microseconds.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/core/cost_fields.h"
#include "agent/core/writer.h"
#include "proto/events.h"
#include "proto/modes.h"

namespace ranktap::agent::stacks {

enum class StackSite : uint8_t { kLaunch = 0, kSynchronize = 1, kAllocate = 2, kCopy = 3 };

// Bits of the sites at which stacks are taken now.
extern std::atomic<uint32_t> g_stack_sites;
extern std::atomic<bool> g_modules_wanted;

// The sites that a policy asks for at a level; kAuto asks for all at level full, for none below.
uint32_t SitesOf(proto::StackPolicy policy, proto::Level level);

// The level changed: reads policy and sampling rate from the agent's configuration. The first call
// that asks for stacks reads the modules. Arming or drain thread.
void SetStackLevel(proto::Level level);

// Adds the modules that the program has loaded since. Drain thread, once in a while.
void RefreshModules();
// True once after a walk has ended at a module that is not known yet: RefreshModules should run
// soon.
bool TakeModulesWanted();

proto::ArenaRef CaptureStackNow(ThreadState& thread, uint64_t hint);

// 0: none wanted here, or none to be had. `hint` tells call sites apart that have the same stack
// pointer: the kernel's or the function's address.
inline proto::ArenaRef CaptureStack(ThreadState& thread, StackSite site, uint64_t hint) {
  if ((g_stack_sites.load(std::memory_order_relaxed) >> static_cast<uint32_t>(site) & 1) == 0)
      [[likely]] {
    return 0;
  }
  return CaptureStackNow(thread, hint);
}

inline bool TakeModulesWanted() {
  return g_modules_wanted.load(std::memory_order_relaxed) &&
         g_modules_wanted.exchange(false, std::memory_order_relaxed);
}

// Adds what stacks have cost since the start: `stack...` of v1.Cost. Runs on: the sender thread,
// the exiting thread.
void AddStackCost(CostFields& cost);

}  // namespace ranktap::agent::stacks
