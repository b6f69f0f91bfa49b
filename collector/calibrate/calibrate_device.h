// Measures what this host's GPUs can do, through the driver: multiply-adds and products on tensor
// cores, copies within L2 and memory, to the host and to another GPU, and what a launch takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/roofline/device_roofs.h"
#include "collector/file/result.h"

namespace ranktap::collector {

struct DeviceCalibration {
  std::vector<DeviceRoofs> devices;  // those that were measured to the end
  std::string note;     // why there is none: no driver, no device, no kernels; no failure
  std::string failure;  // the call that failed
};
// Takes some seconds of each GPU, one after the other.
DeviceCalibration CalibrateDevices();

// JSON, as reports read it.
std::string DeviceRoofsText(const DeviceRoofs& roofs);
bool IsDeviceRoofs(std::string_view text);  // else a processor's, or none at all
// Refuses what the stand-in for CUDA wrote.
Result<DeviceRoofs> ParseDeviceRoofs(std::string_view text);

// Where a GPU's file lies: $XDG_DATA_HOME/ranktap/roofs/HOST.UUID.json. Empty: no home, or no such
// name.
std::string DeviceRoofsPath(std::string_view host, std::string_view uuid);

}  // namespace ranktap::collector
