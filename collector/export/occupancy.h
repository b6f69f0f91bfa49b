// How much of a multiprocessor a kernel can use, by the rules of NVIDIA's occupancy calculator.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/events.h"
#include "ranktap/v1/hello.pb.h"

namespace ranktap::collector {

struct Occupancy {
  double blocks_per_sm = 0;  // of the grid, evenly spread
  double warps_per_sm = 0;
  // Percent of the resident threads a multiprocessor can hold, by what the kernel's registers,
  // shared memory and block size allow and the grid fills.
  std::optional<int> percent;
};

// nullopt when the device's properties are not known well enough.
std::optional<Occupancy> EstimateOccupancy(const v1::Device& device,
                                           const proto::LaunchShape& shape);

// Blocks of the kernel that a multiprocessor can hold at once; 0: it cannot run there. A part of
// EstimateOccupancy, held against NVIDIA's own calculator in a test.
int MaxActiveBlocks(const v1::Device& device, const proto::LaunchShape& shape);

}  // namespace ranktap::collector
