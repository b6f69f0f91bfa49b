// Settings of PyTorch that cost time, as its hooks told them in windows.
#pragma once

#include <cstdint>
#include <optional>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct ProgramSettings {
  int64_t threads = 0;   // that an operator of the CPU computes with
  int64_t cpus = 0;      // that the process may run on
  bool anomaly = false;  // autograd's anomaly mode
};

// The last that were told; nullopt: none.
std::optional<ProgramSettings> SettingsOf(const Trace& trace);

}  // namespace ranktap::collector
