// Why a device runs more slowly than it could, by NVML's bits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ranktap::collector {

struct ThrottleReason {
  uint64_t bit;
  std::string_view name;
};
// Without those of an idle device and of clocks that somebody has set: they are no throttling.
inline constexpr std::array<ThrottleReason, 6> kThrottleReasons = {
    {{0x4, "power cap"},
     {0x8, "hardware slowdown"},
     {0x10, "sync boost"},
     {0x20, "temperature (software)"},
     {0x40, "temperature (hardware)"},
     {0x80, "power brake"}}};

inline uint64_t ThrottlingOf(uint64_t bits) {
  uint64_t throttling = 0;
  for (const ThrottleReason& reason : kThrottleReasons) throttling |= bits & reason.bit;
  return throttling;
}

// "power cap, temperature (software)"
inline std::string NamesOfThrottling(uint64_t bits) {
  std::string text;
  for (const ThrottleReason& reason : kThrottleReasons) {
    if ((bits & reason.bit) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(reason.name);
  }
  return text;
}

}  // namespace ranktap::collector
