// Operators of our own captures: PyTorch's NVTX profiler state makes a range of each, "aten::mm,
// seq = 7, op_id = 12", that the agent splits (proto::kOperatorPayload);
// agent/sources/torch/python/operators.py marks a line of JSON for each op_id with what its
// execution trace observer saw. A program's own emit_nvtx makes the same ranges, or whole texts
// with shapes behind (", sizes = [[8, 16], []]"). One step of loading, after the tables are sorted.
//
//   ranges  "aten::mm, seq = 7, op_id = 12"  10..20    -> operators  aten::mm  10..20
//   mark    [12,1,1,"[[3, 5], [5, 7]]","[]",""]           record_function 12, scope 1,
//                                                         shapes [[3, 5], [5, 7]], and
//                                                         sequence 8: 7 + 1, as 0 is none
//   ranges  "epoch 1, step 2"                 0..100   -> stays a range: it has no op_id
#pragma once

#include "collector/trace/model.h"

namespace ranktap::collector {

// Moves the ranges of operators from Trace::ranges to Trace::operators, which then holds what an
// import of torch.profiler's file would. An operator that the observer did not see, or whose mark
// was lost, has a time and a name only.
void TakeFrameworkOperators(Trace* trace);

}  // namespace ranktap::collector
