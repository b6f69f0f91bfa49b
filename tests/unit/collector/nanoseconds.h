// Spans of time in the unit of a trace.
#pragma once

#include <cstdint>

namespace ranktap::collector {

inline constexpr int64_t kUs = 1'000, kMs = 1'000'000;

}  // namespace ranktap::collector
