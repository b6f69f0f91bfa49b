// What the collector samples of each device (v1.DeviceSample), as counters of a trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/trace/model.h"
#include "ranktap/v1/devices.pb.h"

namespace ranktap::collector {

enum class DeviceCounter : size_t {
  kSmClock,
  kPower,
  kTemperature,
  kUtilisation,
  kMemoryUsed,
  kThrottleReasons,
};

// Names as exporters show them, in the enum's order.
inline constexpr std::array<std::string_view, 6> kDeviceCounters = {
    "SM clock (MHz)",      "power (W)",           "temperature (C)",
    "GPU utilisation (%)", "memory used (bytes)", "throttle reasons (NVML bits)"};

// The samples of devices on which the trace has work, as its counters. A sample outside the trace's
// bounds does not widen them. Before the tables are sorted.
void AddDeviceCounters(const v1::DeviceSamples& samples, Trace* trace);

}  // namespace ranktap::collector
