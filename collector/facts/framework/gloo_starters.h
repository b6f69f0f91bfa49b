// Which call of torch.distributed a collective of gloo's belongs to.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// By row of trace.operators: of "gloo:all_reduce" and its like, which run on gloo's own threads,
// the "c10d::allreduce_" that started it; kNone: not known, or no collective of gloo's. Calls and
// collectives of one kind keep their order, and a window may have cut either off.
std::vector<uint32_t> GlooStarters(const Trace& trace);

// "gloo:all_reduce"
bool IsGlooOperator(const Trace& trace, uint32_t op);
// "c10d::allreduce_"
bool IsDistributedOperator(const Trace& trace, uint32_t op);

}  // namespace ranktap::collector
