// How calibrate samples: five times, of which it keeps the median and how far they lie apart.
#pragma once

#include <string>
#include <vector>

#include "collector/facts/roofline/host_roofs.h"

namespace ranktap::collector {

inline constexpr int kCalibrationSamples = 5;

MeasuredRate MedianOf(std::vector<double> rates);

// "2026-11-26T20:00:00Z"
std::string Today();

// The name of this host, as runs have it.
std::string HostName();

}  // namespace ranktap::collector
