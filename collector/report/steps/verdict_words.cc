#include "collector/report/steps/verdict_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/cells.h"

namespace ranktap::collector {

std::string_view DescribeLoss(Cause cause) {
  switch (cause) {
    case Cause::kTransfer:
      return "communication that nothing computes behind";
    case Cause::kMemory:
      return "copies and memsets that nothing computes behind";
    case Cause::kCheckpoint:
      return "an idle device while the host saves a checkpoint";
    case Cause::kCollection:
      return "an idle device while Python collects garbage";
    case Cause::kDataLoading:
      return "an idle device while the host loads data";
    case Cause::kCapture:
      return "an idle device while the host captures CUDA graphs";
    case Cause::kSync:
      return "an idle device after the host waited for it (synchronisation)";
    case Cause::kHost:
      return "an idle device because the host launches too late (host-bound)";
    case Cause::kLatency:
      return "gaps between kernels that were launched in time";
    case Cause::kDependency:
      return "launched work that waits for something else";
    case Cause::kNotRecorded:
      return "time in which capture was off";
    default:
      return NameOf(cause);
  }
}

std::string_view DescribePhase(Cause cause) {
  switch (cause) {
    case Cause::kCheckpoint:
      return "saving checkpoints";
    case Cause::kCollection:
      return "collecting garbage";
    case Cause::kDataLoading:
      return "waiting for data";
    case Cause::kCapture:
      return "capturing CUDA graphs";
    case Cause::kOptimizer:
      return "in the optimizer";
    case Cause::kBackward:
      return "in the backward pass";
    case Cause::kForward:
      return "in the forward pass";
    default:
      return "";
  }
}

std::string_view DescribeHostsTime(Cause cause) {
  if (cause == Cause::kTransfer) return "in collectives";
  if (cause == Cause::kWait) return "waiting for other ranks";
  const std::string_view phase = DescribePhase(cause);
  return phase.empty() ? "running code on the host" : phase;
}

std::string DescribeExcess(Cause cause) {
  if (cause == Cause::kHost) return "running code on the host";
  const std::string_view phase = DescribePhase(cause);
  return phase.empty() ? fmt::format("on {}", NameOf(cause)) : std::string(phase);
}

std::string DescribeHostAhead(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const auto most = std::max_element(
      waterfalls.begin(), waterfalls.end(),
      [](const RankWaterfall& a, const RankWaterfall& b) { return a.host_ahead < b.host_ahead; });
  if (most == waterfalls.end() || most->host_ahead <= 1) return "";
  return fmt::format("the host of {} runs {:.1f} {}s ahead of its device: steps are the device's",
                     RankName(run.traces[static_cast<size_t>(most - waterfalls.begin())]),
                     most->host_ahead, most->steps.noun());
}

}  // namespace ranktap::collector
