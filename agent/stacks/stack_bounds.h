// The memory that the stack pointer lies in: what a walk may read. Asked of the kernel once a
// thread, and again when the program has switched to a stack of its own.
// Runs on: user threads.  May not: allocate, lock. FindStackBounds reads /proc/self/maps (100 us
// and more), which is why it is asked so rarely.
#pragma once

#include <cstdint>

namespace ranktap::agent::stacks {

struct StackBounds {
  uint64_t low = 0, high = 0;  // [low, high); empty: not known
  bool Contain(uint64_t address) const { return address >= low && address < high; }
};

// The mapping that has `address`. The main thread's grows downwards; its low end is where the
// kernel keeps room for it.
StackBounds FindStackBounds(uint64_t address);

}  // namespace ranktap::agent::stacks
