#include "collector/facts/roofline/device_roofs.h"

#include <fmt/core.h>

#include <algorithm>

namespace ranktap::collector {

std::shared_ptr<const CalibratedPeaks> CalibratedPeaksOf(const DeviceRoofs& roofs,
                                                         const DevicePeaks* sheet) {
  auto of = std::make_shared<CalibratedPeaks>();
  if (sheet != nullptr) of->peaks = *sheet;
  DevicePeaks& peaks = of->peaks;
  const auto measured = [&](ComputeUnit unit, double rate) {
    double& tera = peaks.tera[static_cast<size_t>(unit)];
    // fp16 and bf16 have one roof: the higher.
    tera = of->has(unit) ? std::max(tera, rate / 1e12) : rate / 1e12;
    of->units |= 1U << static_cast<unsigned>(unit);
  };
  for (const DeviceRoofs::Arithmetic& row : roofs.arithmetic) {
    if (row.rate.rate <= 0 || row.is_lower_bound) continue;
    for (size_t i = 0; i < kComputeUnits; ++i) {
      const auto unit = static_cast<ComputeUnit>(i);
      if (row.type == NameOf(unit)) measured(unit, row.rate.rate);
    }
    if (row.type == "bf16 tensor") measured(ComputeUnit::kHalfTensor, row.rate.rate);
  }
  for (const DeviceRoofs::Bandwidth& row : roofs.bandwidths) {
    if (row.rate.rate <= 0) continue;
    if (row.what == "memory") {
      peaks.bandwidth_gb = row.rate.rate / 1e9;
      of->has_bandwidth = true;
    } else if (row.what == "L2") {
      peaks.l2_bandwidth_gb = row.rate.rate / 1e9;
      of->has_l2 = true;
    }
  }
  if (roofs.l2_bytes > 0) peaks.l2_mib = static_cast<double>(roofs.l2_bytes) / (1 << 20);
  of->source = fmt::format("measured by ranktap calibrate, {}", roofs.date.substr(0, 10));
  if (sheet != nullptr) of->source += fmt::format("; what it has not: {}", sheet->source);
  peaks.source = of->source;
  return of;
}

}  // namespace ranktap::collector
