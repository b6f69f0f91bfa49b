// Allocations of our own captures: marks of PyTorch's CPU allocator (proto::kAllocationPayload) and
// lines of its CUDA allocator's history, with what the blocks are for
// (agent/sources/torch/python/memory.py writes both). One step of loading, after the operators are
// there.
#pragma once

#include "collector/trace/model.h"

namespace ranktap::collector {

// Moves the marks of allocations from Trace::marks to Trace::allocations. Blocks that were there
// before a window are allocated at its start, if the program told of them or the history does; of
// other blocks that are only seen to go nothing is known, and they are left out. All have their
// category.
void TakeFrameworkAllocations(Trace* trace);

}  // namespace ranktap::collector
