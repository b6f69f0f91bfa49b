// The categories of events ("cat") that Kineto and its relatives of other devices write.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::collector {

enum class KinetoCategory : uint8_t {
  kUnknown,
  kOperator,
  kAnnotation,
  kPython,
  kRuntime,
  kDriver,
  kKernel,
  kCopy,
  kMemset,
  kSync,
  kDeviceAnnotation,
  kOverhead,
  kCounters,
  kIgnored,
};

KinetoCategory KinetoCategoryNamed(std::string_view name);

}  // namespace ranktap::collector
