// An execution trace and torch.profiler's file of the same process as one: what chakra_trace_link
// does, also without a GPU and without ProfilerStep.
#pragma once

#include <string>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// Each execution trace without times goes into the trace, of those with times, that shares most of
// its operators (by rf_id and name), where that is at least half of the smaller one's. The other
// gets its tensors, shapes, types, scalars, sequence numbers, scopes, collectives and process
// groups, where it has none itself, and the execution trace is gone. One without a match stays,
// unless its rank has a trace with times: then a sentence in `problems` says why the two are not
// one.
void LinkExecutionTraces(std::vector<Trace>* traces, std::vector<std::string>* problems);

}  // namespace ranktap::collector
