// `run|collect --keep`: how much of each rank stays, and what saves it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/ingest/store/kept_segments.h"
#include "collector/terminal/arguments.h"

namespace ranktap::collector {

struct KeepOptions {
  std::string keep, keep_bytes, on;
  KeepLimits limits;
  bool on_hang = false, on_out_of_memory = false, on_exit = false, on_signal = false;
  double slow_step = 0;  // so many times the usual one; 0: no matter
  bool saves() const {
    return on_hang || on_out_of_memory || on_exit || on_signal || slow_step != 0;
  }
};
void AddKeepOptions(Arguments* app, KeepOptions* options);
// Fills in the rest. An exit status, after a complaint, where a text is of no use.
std::optional<int> CheckKeepOptions(KeepOptions* options);

// Records of a GPU are on their way for so long after their work.
inline constexpr uint64_t kOnItsWayNs = 2'000'000'000;

}  // namespace ranktap::collector
