#include "collector/facts/samples/late_line.h"

#include <algorithm>
#include <map>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/samples/host_samples.h"

namespace ranktap::collector {
namespace {

using TimeByLine = std::map<std::string, int64_t>;  // per counted step

TimeByLine LinesOfSteps(const Trace& trace, const RankWaterfall& waterfall) {
  TimeByLine lines;
  const HostSamples& samples = SamplesOf(trace);
  int64_t steps = 0;
  for (const Step& step : waterfall.steps.list) {
    if (step.warm_up) continue;
    ++steps;
    samples.ForEachOfMain(step.start, step.end, [&](const HostSample& sample, int64_t ns) {
      const std::string text = samples.Describe(samples.LineOf(sample.frame));
      if (!text.empty()) lines[text] += ns;
    });
  }
  for (auto& [text, ns] : lines) ns /= std::max<int64_t>(steps, 1);
  return lines;
}

int64_t MedianOf(std::vector<int64_t> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

LateLine MostOver(const TimeByLine& own, const std::vector<TimeByLine>& others, int64_t least_ns) {
  LateLine found;
  for (const auto& [text, ns] : own) {
    std::vector<int64_t> there;
    for (const TimeByLine& lines : others) {
      const auto line = lines.find(text);
      there.push_back(line == lines.end() ? 0 : line->second);
    }
    const int64_t excess = ns - MedianOf(std::move(there));
    if (excess >= least_ns && excess > found.excess_ns) found = {text, excess};
  }
  return found;
}

}  // namespace

LateLine LineOfLongSteps(const Trace& trace, const RankWaterfall& longer,
                         const RankWaterfall& shorter, int64_t least_ns) {
  if (SamplesOf(trace).empty()) return {};
  return MostOver(LinesOfSteps(trace, longer), {LinesOfSteps(trace, shorter)}, least_ns);
}

LateLine FindLateLine(const Run& run, uint32_t late, int64_t least_ns) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<TimeByLine> others;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const bool is_comparable = waterfalls[t].counted > 0 && !SamplesOf(run.traces[t]).empty();
    if (t != late && is_comparable) others.push_back(LinesOfSteps(run.traces[t], waterfalls[t]));
    if (t == late && !is_comparable) return {};
  }
  if (others.empty()) return {};
  return MostOver(LinesOfSteps(run.traces[late], waterfalls[late]), others, least_ns);
}

}  // namespace ranktap::collector
