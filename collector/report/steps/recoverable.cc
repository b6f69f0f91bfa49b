#include "collector/report/steps/recoverable.h"

#include <array>
#include <utility>

#include "collector/facts/causes/critical_path.h"
#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/numbers/interval_set.h"

namespace ranktap::collector {
namespace {

// What both the waterfall and the path tell apart: the path says where the host was when it
// launched, the waterfall why it was late.
enum class Bearer : uint8_t { kCompute, kTransfer, kMemory, kLaunched, kHost };
constexpr size_t kBearers = 5;

Bearer BearerOf(Cause cause) {
  switch (cause) {
    case Cause::kCompute:
      return Bearer::kCompute;
    case Cause::kTransfer:
    case Cause::kWait:
      return Bearer::kTransfer;
    case Cause::kMemory:
      return Bearer::kMemory;
    case Cause::kLatency:
    case Cause::kDependency:
      return Bearer::kLaunched;
    default:
      return Bearer::kHost;
  }
}

using Pieces = std::array<std::vector<Interval>, kBearers>;

std::vector<Pieces> PiecesOfPath(const Run& run, const std::vector<RankWaterfall>& waterfalls) {
  std::vector<Pieces> pieces(run.traces.size());
  const auto add = [&pieces](uint32_t trace, Cause cause, int64_t start, int64_t end) {
    pieces[trace][static_cast<size_t>(BearerOf(cause))].emplace_back(start, end);
  };
  const std::vector<PathSegment>& path = FindCriticalPath(run);
  for (const PathSegment& segment : path) {
    add(segment.trace, segment.cause, segment.start, segment.end);
  }
  if (path.empty()) return pieces;
  // The path ends with the last work of a device; the host may end its last step later.
  const PathSegment& last = path.back();
  const std::vector<Step>& steps = waterfalls[last.trace].steps.list;
  if (!steps.empty()) add(last.trace, Cause::kHost, last.end, steps.back().end);
  return pieces;
}

void AddMoment(int64_t start, int64_t end, std::vector<Interval>* to) {
  if (!to->empty() && to->back().second == start) {
    to->back().second = end;
  } else {
    to->emplace_back(start, end);
  }
}

MomentsByCause Borne(const Trace& trace, const std::vector<Interval>& waits,
                     const RankWaterfall& waterfall, Pieces pieces) {
  MomentsByCause moments;
  std::vector<Interval> counted;
  for (const Step& step : waterfall.steps.list) {
    if (!step.warm_up) counted.emplace_back(step.start, step.end);
  }
  counted = Merged(std::move(counted));
  if (counted.empty()) return moments;  // steps of no length
  std::vector<SetCursor> cursors;
  for (std::vector<Interval>& set : pieces) {
    cursors.emplace_back(Intersection(Merged(std::move(set)), counted));
  }
  SweepDevice(trace, waits, counted.front().first, counted.back().second,
              [&](Cause cause, int64_t start, int64_t end, uint32_t) {
                cursors[static_cast<size_t>(BearerOf(cause))].Split(
                    start, end, [&](int64_t from, int64_t until, bool on_path) {
                      if (on_path) AddMoment(from, until, &moments[static_cast<size_t>(cause)]);
                    });
              });
  moments[static_cast<size_t>(Cause::kWait)].clear();
  return moments;
}

std::vector<MomentsByCause> FindMoments(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<MomentsByCause> borne(run.traces.size());
  std::vector<Pieces> pieces = PiecesOfPath(run, waterfalls);
  const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
  ForEachTraceAtOnce(run, [&](uint32_t t) {
    if (waterfalls[t].counted == 0 || waterfalls[t].on_host || pieces[t] == Pieces{}) return;
    borne[t] = Borne(run.traces[t], waits[t], waterfalls[t], std::move(pieces[t]));
  });
  return borne;
}

}  // namespace

const std::vector<MomentsByCause>& MomentsOnCriticalPath(const Run& run) {
  struct Moments {
    std::vector<MomentsByCause> by_trace;
  };
  return run.memo.Get<Moments>([&run] { return Moments{FindMoments(run)}; }).by_trace;
}

std::vector<CauseTimes> BorneByCriticalPath(const Run& run,
                                            const std::vector<RankWaterfall>& waterfalls) {
  const std::vector<MomentsByCause>& moments = MomentsOnCriticalPath(run);
  std::vector<CauseTimes> borne(moments.size(), CauseTimes{});
  for (size_t t = 0; t < moments.size(); ++t) {
    if (waterfalls[t].counted == 0) continue;
    for (size_t c = 0; c < kCauses; ++c) {
      borne[t][c] = Length(moments[t][c]) / static_cast<int64_t>(waterfalls[t].counted);
    }
  }
  return borne;
}

}  // namespace ranktap::collector
