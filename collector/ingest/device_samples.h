// The readings of NVML that belong to a process.
#pragma once

#include <vector>

#include "collector/ingest/device_sampler.h"
#include "ranktap/v1/devices.pb.h"
#include "ranktap/v1/hello.pb.h"

namespace ranktap::collector {

// Those of the devices that the process told of in its hello, by its numbers for them. Empty, too,
// where it claims more devices than there can be.
v1::DeviceSamples SamplesFor(const v1::Hello& hello, const std::vector<DeviceReading>& readings);

}  // namespace ranktap::collector
