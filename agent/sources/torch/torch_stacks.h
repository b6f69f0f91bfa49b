// Python stacks of operators. PyTorch's bindings give the interpreter's lock back before they call
// an operator, so that its frames may not be touched there any more: the stack is taken where they
// give it back, and holds until they take it again. It is taken there if an operator runs with the
// lock. The lock is never waited for.
//
// Only CPython's functions are used, on frames of the calling thread, with the lock held. Those
// of 3.11 and later they make a frame object for each frame, which the interpreter would make for
// any traceback; the garbage collector is off meanwhile, as it could run the program's finalizers.
// No object of the program lives longer for it but the code objects that a stack has named. Runs
// on: threads that hold the interpreter's lock.  May not: wait, raise, run Python code; allocate
// but for a stack that is new, and what CPython does.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "agent/core/writer.h"
#include "proto/events.h"

namespace ranktap::agent {

// Whether stacks are taken now.
extern std::atomic<bool> g_python_stacks;

// From now on, each told once as lines of a mark called `mark` in `domain`: [frame's number,
// "file.py(12): name"] and [stack's number, [frames, the innermost first]]. The first of `prefixes`
// (lines) that fits a file's name is cut from it. False: this CPython or this PyTorch lacks what is
// needed.
[[nodiscard]] bool StartPythonStacks(proto::ArenaRef domain, proto::ArenaRef mark,
                                     std::string_view prefixes);
// How many stacks were not taken since the last call: more different ones than there is room for,
// or new while an exception of the program's was pending.
uint64_t StopPythonStacks();

uint64_t PythonStackNow(ThreadState& thread);

// The number of the stack that an operator which begins now was called from; 0: none to be had.
inline uint64_t PythonStack(ThreadState& thread) {
  if (!g_python_stacks.load(std::memory_order_relaxed)) [[likely]]
    return 0;
  return PythonStackNow(thread);
}

}  // namespace ranktap::agent
