#include "collector/facts/samples/host_cause_lines.h"

#include <algorithm>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/samples/host_samples.h"

namespace ranktap::collector {

std::array<std::string, kCauses> LinesOfHosts(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const std::vector<HostCommunication> communication = CommunicationOfHosts(run);
  std::array<LineTally, kCauses> tallies;
  for (size_t t = 0; t < run.traces.size(); ++t) {
    const HostSamples& samples = SamplesOf(run.traces[t]);
    if (waterfalls[t].counted == 0 || !waterfalls[t].on_host || samples.empty()) continue;
    const std::vector<Explained::Piece> pieces =
        ExplainHost(run.traces[t], communication[t]).Take();
    for (const Step& step : waterfalls[t].steps.list) {
      if (step.warm_up) continue;
      auto piece = std::ranges::upper_bound(
          pieces, step.start, {}, [](const Explained::Piece& of) { return of.interval.second; });
      for (; piece != pieces.end() && piece->interval.first < step.end; ++piece) {
        const int64_t start = std::max(step.start, piece->interval.first);
        const int64_t end = std::min(step.end, piece->interval.second);
        if (start < end) tallies[static_cast<size_t>(piece->cause)].Add(samples, start, end);
      }
    }
  }
  std::array<std::string, kCauses> lines;
  for (size_t c = 0; c < kCauses; ++c) {
    const auto cause = static_cast<Cause>(c);
    if (cause != Cause::kTransfer && cause != Cause::kWait) lines[c] = tallies[c].Most();
  }
  return lines;
}

}  // namespace ranktap::collector
