// Pids and tids of a file into which a script joined several ranks' traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ranktap::collector {

// "rank0_4000", "1_4001", "[rank 2] 4002": the rank, and the rest as it was before.
struct RankedId {
  uint32_t rank = 0;
  std::string_view id;
};
// nullopt: nothing of the kind.
std::optional<RankedId> RankedIdIn(std::string_view text);

}  // namespace ranktap::collector
