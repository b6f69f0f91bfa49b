#include "collector/report/steps/step_parts.h"

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/explained_time.h"
#include "collector/facts/causes/host_places.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/host_activity.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {
namespace {

std::vector<Explained::Piece> PassesOf(const Trace& trace) {
  Explained passes;
  AddPasses(trace, &passes);
  return passes.Take();
}

// The host's moments, each in the pass that it lies in, or between two passes.
class HostMoments {
 public:
  explicit HostMoments(const Trace& trace) : pieces_(PassesOf(trace)), gaps_(trace) {}
  // visit(place, ns) for [start, end), piece by piece; times only grow.
  template <typename Visit>
  void Split(int64_t start, int64_t end, Visit&& visit) {
    pieces_.Split(start, end, Cause::kHost, [&](int64_t from, int64_t until, Cause cause) {
      visit(cause == Cause::kHost ? gaps_.At(from) : DescribePhase(cause), until - from);
    });
  }

 private:
  PieceCursor pieces_;
  PassGaps gaps_;
};

std::vector<PartOfStep> PartsOnDevice(const Trace& trace, const std::vector<Interval>& waits,
                                      const std::vector<Step>& steps) {
  std::vector<PartOfStep> parts;
  HostMoments host(trace);
  size_t step = 0;
  SweepDevice(trace, waits, steps.front().start, steps.back().end,
              [&](Cause cause, int64_t start, int64_t end, uint32_t) {
                while (step < steps.size() && steps[step].end <= start) ++step;
                for (size_t i = step; i < steps.size() && steps[i].start < end; ++i) {
                  const int64_t from = std::max(start, steps[i].start);
                  const int64_t until = std::min(end, steps[i].end);
                  if (cause != Cause::kHost) {
                    parts.push_back({{cause, ""}, i, until - from});
                    continue;
                  }
                  host.Split(from, until, [&](std::string_view place, int64_t ns) {
                    parts.push_back({{cause, place}, i, ns});
                  });
                }
              });
  return parts;
}

std::vector<PartOfStep> PartsOnHost(const Trace& trace, const HostCommunication& communication,
                                    const std::vector<Step>& steps) {
  std::vector<PartOfStep> parts;
  PieceCursor pieces(ExplainHost(trace, communication).Take());
  const PassGaps gaps(trace);
  for (size_t i = 0; i < steps.size(); ++i) {
    pieces.Split(steps[i].start, steps[i].end, Cause::kHost,
                 [&](int64_t start, int64_t end, Cause cause) {
                   const bool is_host = cause == Cause::kHost;
                   parts.push_back({{cause, is_host ? gaps.At(start) : ""}, i, end - start});
                 });
  }
  return parts;
}

}  // namespace

std::vector<std::vector<PartOfStep>> PartsOfSteps(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
  const std::vector<HostCommunication> communication = CommunicationOfHosts(run);
  std::vector<std::vector<PartOfStep>> parts(run.traces.size());
  for (size_t t = 0; t < parts.size(); ++t) {
    const std::vector<Step>& steps = waterfalls[t].steps.list;
    if (steps.empty()) continue;
    parts[t] = waterfalls[t].on_host ? PartsOnHost(run.traces[t], communication[t], steps)
                                     : PartsOnDevice(run.traces[t], waits[t], steps);
  }
  return parts;
}

}  // namespace ranktap::collector
