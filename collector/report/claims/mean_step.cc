#include "collector/report/claims/mean_step.h"

#include <fmt/core.h>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {

constexpr double kWorthSaying = 0.01;  // of the step

bool MeanStep::IsWorthSaying(int64_t loss_ns) const {
  // Of a step below 100 ns one per cent is nothing, and a loss of nothing has no one to blame.
  return loss_ns > 0 && loss_ns >= static_cast<int64_t>(kWorthSaying * static_cast<double>(ns));
}

std::string MeanStep::OfWhat() const {
  return has_steps ? fmt::format(" of each {} {}", FormatNs(ns), noun)
                   : fmt::format(" of {}", FormatNs(ns));
}

MeanStep MeanOfRanks(const std::vector<RankWaterfall>& waterfalls) {
  MeanStep mean;
  for (const RankWaterfall& waterfall : waterfalls) {
    if (waterfall.counted == 0) continue;
    ++mean.ranks;
    mean.ns += waterfall.mean_step;
    for (size_t c = 0; c < kCauses; ++c) mean.times[c] += waterfall.mean[c];
    mean.has_steps &= !waterfall.steps.source.empty();
    if (waterfall.steps.noun() != "step") mean.noun = waterfall.steps.noun();
  }
  if (mean.ranks == 0) return mean;
  mean.ns /= mean.ranks;
  for (int64_t& ns : mean.times) ns /= mean.ranks;
  return mean;
}

}  // namespace ranktap::collector
