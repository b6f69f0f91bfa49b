// What the processor of one host can do, as `ranktap calibrate` measured it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/roofline/device_peaks.h"

namespace ranktap::collector {

// A median of several measurements, a second. 0: not measured.
struct MeasuredRate {
  double rate = 0;
  double spread_percent = 0;  // largest less smallest, of the median
};

struct HostRoofs {
  struct Arithmetic {
    std::string type;         // "fp64", "fp32", "bf16", "int8"
    std::string instruction;  // "AVX-512 FMA"
    MeasuredRate one, all;    // of one core, and of all that the process may use
  };
  struct Level {
    std::string name;   // "L1", "L2", "L3", "memory"; "memory of node 0" where there are several
    int64_t bytes = 0;  // of the working set, one core's
    MeasuredRate one, all;
  };
  std::string host, processor, date;
  std::string kernel;  // "6.1.0", of Linux
  double mhz = 0;      // as Linux said while it was measured; 0: it does not
  int cores = 0;
  int64_t cache_bytes = 0;  // of the last level; 0: not known
  std::vector<Arithmetic> arithmetic;
  std::vector<Level> levels;

  // Of all cores, for an operator that moves so much: that of the smallest cache which holds it
  // all, as if whatever ran before had left it there. A model, no measurement of the operator. L1
  // is left out: an operator's cores are not those of the one before.
  double BandwidthFor(int64_t moved) const {
    double memory = 0;
    for (const Level& level : levels) {
      // Half of the cache was measured.
      if ((level.name == "L2" || level.name == "L3") && level.all.rate > 0 &&
          moved <= 2 * level.bytes * cores) {
        return level.all.rate;
      }
      if (level.name == "memory") memory = level.all.rate;
    }
    return memory;
  }

  // As a device's peaks: of all cores. bf16's stand for all 16-bit floats.
  DevicePeaks Peaks() const {
    DevicePeaks peaks;
    peaks.name = "this host";
    peaks.source = "measured by ranktap calibrate";
    for (const Arithmetic& of : arithmetic) {
      const double tera = of.all.rate / 1e12;
      if (of.type == "fp64") peaks.tera[static_cast<size_t>(ComputeUnit::kFp64)] = tera;
      if (of.type == "fp32") peaks.tera[static_cast<size_t>(ComputeUnit::kFp32)] = tera;
      if (of.type == "bf16") peaks.tera[static_cast<size_t>(ComputeUnit::kHalfTensor)] = tera;
      if (of.type == "int8") peaks.tera[static_cast<size_t>(ComputeUnit::kInt8)] = tera;
    }
    for (const Level& level : levels) {
      if (level.name == "memory") peaks.bandwidth_gb = level.all.rate / 1e9;
    }
    peaks.l2_mib = static_cast<double>(cache_bytes) / (1024 * 1024);
    return peaks;
  }
};

}  // namespace ranktap::collector
