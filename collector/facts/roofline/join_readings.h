// Which kernels of a run another run's counters belong to: by the function's name, grid and block,
// and among those by order.
//
//   the file     gemm(80) add(4) gemm(80)
//   the run      gemm(80) add(4) gemm(80) | gemm(80) add(4) gemm(80) | ...
//   step                  0 (warm-up)                  1                  the whole sequence is
//   here
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collector/trace/model.h"
#include "collector/trace/read_kernels.h"

namespace ranktap::collector {

struct JoinedReadings {
  struct Joined {
    ReadKernel read;
    uint32_t kernel = kNone;  // row of kernels; kNone: the run has no such launch
  };
  std::vector<Joined> kernels;  // by the start of the run's own
  size_t joined = 0;
  // Their whole sequence is one of the run's. False: the k-th of a name and shape is the k-th from
  // the first step after the warm-up.
  bool in_order = false;
  bool by_shape = true;                   // the file says grids
  std::map<std::string, size_t> missing;  // by kernel: readings of which the run has no launch
};

// Kept in the trace's memo, as KnowHost does, for JoinKernelCounters().
const JoinedReadings& KnowReadings(std::vector<ReadKernel> readings, const Trace& trace);
// nullptr: nobody told.
const JoinedReadings* KnownReadingsOf(const Trace& trace);

}  // namespace ranktap::collector
