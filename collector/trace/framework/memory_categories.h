// What a block of memory is for, as torch.profiler's memory timeline tells it, from what our
// captures have: when and inside of what it was allocated, and what the program said it is.
#pragma once

#include <vector>

#include "collector/trace/framework/memory_block.h"

namespace ranktap::collector {

// For each block, in the order of start. The rules, the first that holds:
//   parameter, gradient, optimizer state   the program said so (buffers count as parameters)
//   unknown          it was there before, and nothing is said of it
//   temporary        given back inside of the outermost operator that allocated it, or allocated by
//                    the optimizer
//   autograd detail  allocated in the backward pass, but not by a forward that is run again there
//   activation       allocated in the forward of a module, or between it and the backward
//   input            allocated while waiting for data, or in a step before its first forward; but
//                    unknown where it outlives the next step too: a loop that keeps each batch or
//                    result leaks it. Blocks that the first step or the program before it made may
//                    stay.
// Sets `owner` where nothing is told: the innermost module open on the thread.
std::vector<MemoryCategory> Categorize(const Trace& trace, std::vector<MemoryBlock>* blocks);

}  // namespace ranktap::collector
