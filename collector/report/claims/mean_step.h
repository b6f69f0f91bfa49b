// The step that a verdict's shares are of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/causes/cause.h"

namespace ranktap::collector {

struct RankWaterfall;

// Mean over the ranks that have steps, or anything on a device.
struct MeanStep {
  int64_t ranks = 0, ns = 0;
  CauseTimes times{};
  bool has_steps = true;           // false: some rank's whole trace is one
  std::string_view noun = "step";  // or "period", "call"

  // 1 % of the step, at least.
  bool IsWorthSaying(int64_t loss_ns) const;
  std::string OfWhat() const;  // " of each 412 ms step"
};

MeanStep MeanOfRanks(const std::vector<RankWaterfall>& waterfalls);

}  // namespace ranktap::collector
