#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How long did each step take, and where did it go? One row a rank and step (steps.h finds them):
//   total_ns        on the host
//   device_ns  of the step's time on the host, when anything ran on a device
//   gpu_ns          sum of the work that the step launched, whenever it ran
//   kernels         that it launched
// and, where our hook in PyTorch told of them, the phases that began in the step:
//   forward_ns      root modules running
//   backward_ns, optimizer_ns
//   data_ns         waiting for the data loader
Table TabulateSteps(const Run& run);

}  // namespace ranktap::collector
