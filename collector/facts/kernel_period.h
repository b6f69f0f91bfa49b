// The period of a trace's sequence of kernel names: the first lag at which 95 % of the names are
// the same again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct KernelPeriod {
  std::vector<uint32_t> first_kernels;  // rows, one for each time that what repeats begins
  size_t kernels = 0;                   // 0: nothing repeats three times
};

KernelPeriod FindKernelPeriod(const Trace& trace);

}  // namespace ranktap::collector
