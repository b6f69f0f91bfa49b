// The largest size of an allocation that an importer believes.
#pragma once

#include <cstdint>

namespace ranktap::collector {

// No allocation is larger: 4 TiB. Sums of what a damaged file says must not overflow.
inline constexpr int64_t kLargestAllocation = int64_t{1} << 42;

}  // namespace ranktap::collector
