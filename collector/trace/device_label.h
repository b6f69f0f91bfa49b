// How a person calls a device of a trace.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "collector/trace/model.h"

namespace ranktap::collector {

// Kinds of devices other than GPUs. An importer that knows no more of one calls it so.
inline constexpr std::string_view kDeviceWords[] = {"NPU", "XPU", "HPU", "TPU", "MTIA"};

// "GPU 0"; "NPU 0" where the file says so.
inline std::string DeviceLabel(const Trace& trace, uint32_t device) {
  std::string_view kind = "GPU";
  for (const v1::Device& known : trace.hello.devices()) {
    if (known.id() != device) continue;
    for (const std::string_view word : kDeviceWords) {
      if (known.name() == word) kind = word;
    }
  }
  return fmt::format("{} {}", kind, device);
}

}  // namespace ranktap::collector
