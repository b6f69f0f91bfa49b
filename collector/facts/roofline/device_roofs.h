// What one GPU can do, as `ranktap calibrate` measured it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/facts/roofline/device_peaks.h"
#include "collector/facts/roofline/host_roofs.h"

namespace ranktap::collector {

struct DeviceRoofs {
  // A rate of 0: not measured, as on the stand-in for CUDA, whose kernels compute nothing.
  struct Arithmetic {
    std::string type;             // as NameOf(ComputeUnit); "bf16 tensor" beside them
    std::string instruction;      // "mma.sync m16n8k16"
    MeasuredRate rate;            // FLOP/s
    double mhz = 0;               // the SMs' clock in the last sample
    bool is_lower_bound = false;  // the device has a faster instruction
  };
  struct Bandwidth {
    // "L2", "memory", "memory, copied", "host to device", "device to host", "to device 1"
    std::string what;
    int64_t bytes = 0;  // of the working set
    MeasuredRate rate;  // B/s; of a copy what is read and what is written
  };
  struct Latency {
    std::string what;  // "launch", "launch and synchronise"
    MeasuredRate ns;
  };
  std::string host, date;
  std::string name, uuid;    // "NVIDIA H100 80GB HBM3"; 32 digits
  int number = 0;            // as the driver counts
  std::string driver;        // "CUDA 13.0, 580.65.06"
  std::string architecture;  // "9.0"
  int sms = 0;
  double mhz = 0, memory_mhz = 0;  // the highest, as the driver says
  int64_t memory_bytes = 0, l2_bytes = 0;
  bool is_stand_in = false;
  std::vector<Arithmetic> arithmetic;
  std::vector<Bandwidth> bandwidths;
  std::vector<Latency> latencies;
};

// The peaks of a device that was measured: its own where there are figures, else the maker's.
struct CalibratedPeaks {
  DevicePeaks peaks;
  std::string source;  // the text of `peaks.source`
  uint32_t units = 0;  // measured, a bit each
  bool has_bandwidth = false, has_l2 = false;

  bool has(ComputeUnit unit) const { return (units >> static_cast<unsigned>(unit) & 1) != 0; }
};
// `sheet`: of the table of devices; nullptr: it is not there. A lower bound is no roof.
std::shared_ptr<const CalibratedPeaks> CalibratedPeaksOf(const DeviceRoofs& roofs,
                                                         const DevicePeaks* sheet);

}  // namespace ranktap::collector
