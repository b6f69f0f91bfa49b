// Sequences of device work by the operators that launched them. A part of patterns.h.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "collector/facts/device_names.h"

namespace ranktap::collector {

struct OperatorPattern {
  std::string name;               // of the operator
  std::vector<uint32_t> symbols;  // of DeviceNames, by start
  int64_t count = 0, gpu_ns = 0, cpu_ns = 0;
  std::set<size_t> traces;
};

struct OperatorChoice {
  std::string name;     // the shallowest operators that contain it; empty: the outermost of all
  size_t shortest = 3;  // device operations
  bool as_hta = false;  // without what the last ProfilerStep launched, names as they are
};

// In no order that means anything, but the same for the same input in another order.
std::vector<OperatorPattern> FindOperatorPatterns(const Run& run, const DeviceNames& names,
                                                  DeviceNames::Timeline timeline,
                                                  const OperatorChoice& choice);

}  // namespace ranktap::collector
