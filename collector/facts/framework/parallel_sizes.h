// How the ranks of a job share the work: how many of them train on different data.
#pragma once

#include <cstdint>
#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct ParallelSizes {
  int64_t world = 1;
  int64_t data = 0;   // ranks with data of their own for each piece of the model; 0: not known
  std::string known;  // why, or why not, as a sentence's end
  // Ranks over which one copy of the model is spread; 1 where `data` is not known.
  int64_t model() const { return data > 0 ? world / data : 1; }
};

// From the process groups of torch.distributed, the first rule that answers:
//   `given` > 0          what the person says
//   one rank             1
//   groups named for it  those with this rank by groups that say data parallel (Megatron's
//                        DATA_PARALLEL_GROUP, a DeviceMesh's mesh_dp, mesh_fsdp, ...); else the
//                        world by those with it by groups of tensor, pipeline, context or sequence
//                        parallelism
//   no smaller group     the whole world
//   a square grid        of nameless groups, rows and columns: its side
ParallelSizes SizeParallelism(const Run& run, const Trace& trace, int64_t given);

}  // namespace ranktap::collector
