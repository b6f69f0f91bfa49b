// The nesting of operators, and the operator that caused each work of the device. One step of
// loading, after the tables are sorted and launches are joined.
#pragma once

#include "collector/trace/model.h"

namespace ranktap::collector {

// Fills Operators::parent from times, thread by thread; operators must be in their order
// (SortNested). If two overlap without nesting, which clocks of 1 us cause, the later one's
// parent is the innermost that is still open when it begins.
void NestOperators(Trace* trace);

// Fills DeviceWork::op of kernels, copies and memsets: by external id, where the work or its launch
// names one; else the innermost operator that was open on the launching thread. In captures also
// what files of torch.profiler say themselves: ids, threads of forward operators, Trace::flows.
void JoinOperators(Trace* trace);

}  // namespace ranktap::collector
