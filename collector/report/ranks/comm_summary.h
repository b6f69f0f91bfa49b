#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How long does communication take, and how much of that is waiting? One row for each group, type
// and size (bytes of the full buffer, as nccl-tests count):
//   calls            of the group, not of each rank
//   transfer_ns      mean: from the last arrival to the end, the shortest member's duration
//   wait_ns          mean over members: before the last one arrived
//   algbw_gb_per_s   bytes / transfer
//   busbw_gb_per_s   algbw x nccl-tests' factor (doc/PERFORMANCE.md): allreduce 2(n-1)/n;
//   allgather,
//                    reducescatter, alltoall, gather, scatter (n-1)/n; else 1
//   exposed_ns       mean over members: nothing computed on the rank meanwhile
//   last_rank        that arrived last most often; last_percent: of the calls
// Where only one member was traced, wait and transfer cannot be told apart: kernel_ns is both, and
// the bandwidths, which are of kernel_ns then, are lower bounds.
Table TabulateComm(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector
