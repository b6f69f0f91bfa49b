#include "collector/report/steps/recoverable.h"

#include <array>
#include <numeric>
#include <utility>

#include "collector/facts/causes/critical_path.h"
#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/numbers/interval_set.h"

namespace ranktap::collector {
namespace {

// What both the waterfall and the path tell apart: the path says where the host was when it
// launched, the waterfall why it was late.
enum class Bearer : uint8_t { kCompute, kTransfer, kMemory, kLaunched, kHost };
constexpr size_t kBearers = 5;

constexpr std::array<Bearer, kCauses> kBearerOf = [] {
  std::array<Bearer, kCauses> bearers;
  bearers.fill(Bearer::kHost);
  const auto set = [&bearers](Cause cause, Bearer bearer) {
    bearers[static_cast<size_t>(cause)] = bearer;
  };
  set(Cause::kCompute, Bearer::kCompute);
  set(Cause::kTransfer, Bearer::kTransfer), set(Cause::kWait, Bearer::kTransfer);
  set(Cause::kMemory, Bearer::kMemory);
  set(Cause::kLatency, Bearer::kLaunched), set(Cause::kDependency, Bearer::kLaunched);
  return bearers;
}();

// A set of moments, mostly given in their order.
class MomentSet {
 public:
  // As much of each large one: it takes the block that another gave back (KeepLargeBlocks).
  [[gnu::always_inline]] void Add(int64_t start, int64_t end, size_t reserved) {
    if (set_.empty() || set_.back().second != start) {
      Begin(start, end, reserved);
    } else {
      set_.back().second = end;
    }
  }
  bool is_empty() const { return set_.empty(); }
  std::vector<Interval> Take() { return is_sorted_ ? std::move(set_) : Merged(std::move(set_)); }

 private:
  static constexpr size_t kMany = 4096;
  void Begin(int64_t start, int64_t end, size_t reserved) {
    if (set_.size() == kMany) set_.reserve(reserved);
    is_sorted_ &= set_.empty() || set_.back().second < start;
    set_.emplace_back(start, end);
  }

  std::vector<Interval> set_;
  bool is_sorted_ = true;
};

// The path on one rank, within its counted steps.
class PathOfRank {
 public:
  PathOfRank(const Trace& trace, const RankWaterfall& waterfall)
      : reserved_(DeviceTimeline(trace).size()) {
    if (waterfall.counted == 0 || waterfall.on_host) return;
    for (const Step& step : waterfall.steps.list) {
      if (!step.warm_up) counted_.emplace_back(step.start, step.end);
    }
    counted_ = Merged(std::move(counted_));
  }

  const std::vector<Interval>& counted() const { return counted_; }
  bool is_empty() const { return covered_.is_empty(); }
  int64_t TakeCovered() { return Length(covered_.Take()); }
  void Add(Cause cause, int64_t start, int64_t end) {
    MomentSet& moments = by_bearer_[static_cast<size_t>(kBearerOf[static_cast<size_t>(cause)])];
    // Mostly within the steps in which the piece before it was.
    if (at_ < counted_.size() && counted_[at_].first <= start && end <= counted_[at_].second) {
      moments.Add(start, end, reserved_);
      covered_.Add(start, end, reserved_);
      return;
    }
    while (at_ > 0 && counted_[at_ - 1].second > start) --at_;
    while (at_ < counted_.size() && counted_[at_].second <= start) ++at_;
    for (size_t i = at_; i < counted_.size() && counted_[i].first < end; ++i) {
      const int64_t from = std::max(start, counted_[i].first);
      const int64_t until = std::min(end, counted_[i].second);
      if (from >= until) continue;
      moments.Add(from, until, reserved_);
      covered_.Add(from, until, reserved_);
    }
  }
  std::vector<SetCursor> Take() {
    std::vector<SetCursor> cursors;
    for (MomentSet& moments : by_bearer_) cursors.emplace_back(moments.Take());
    return cursors;
  }

 private:
  size_t reserved_;
  std::vector<Interval> counted_;
  size_t at_ = 0;
  std::array<MomentSet, kBearers> by_bearer_;
  MomentSet covered_;  // mostly one moment for each run of counted steps
};

std::vector<PathOfRank> PathsOf(const Run& run, const std::vector<RankWaterfall>& waterfalls) {
  std::vector<PathOfRank> paths;
  for (size_t t = 0; t < run.traces.size(); ++t) paths.emplace_back(run.traces[t], waterfalls[t]);
  const CriticalPath& path = FindCriticalPath(run);
  path.ForEach([&paths](const PathSegment& segment) {
    paths[segment.trace].Add(segment.cause, segment.start, segment.end);
  });
  if (path.empty()) return paths;
  // The path ends with the last work of a device; the host may end its last step later.
  const PathSegment& last = path.last();
  const std::vector<Step>& steps = waterfalls[last.trace].steps.list;
  if (!steps.empty()) paths[last.trace].Add(Cause::kHost, last.end, steps.back().end);
  return paths;
}

MomentsByCause Borne(const Trace& trace, const std::vector<Interval>& waits, PathOfRank path) {
  std::vector<SetCursor> cursors = path.Take();
  std::array<MomentSet, kCauses> by_cause;
  const size_t reserved = DeviceTimeline(trace).size();
  SweepDevice(trace, waits, path.counted().front().first, path.counted().back().second,
              [&](Cause cause, int64_t start, int64_t end, uint32_t) {
                if (cause == Cause::kWait) return;
                cursors[static_cast<size_t>(kBearerOf[static_cast<size_t>(cause)])].Split(
                    start, end, [&](int64_t from, int64_t until, bool on_path) {
                      if (!on_path) return;
                      by_cause[static_cast<size_t>(cause)].Add(from, until, reserved);
                    });
              });
  MomentsByCause moments;
  for (size_t c = 0; c < kCauses; ++c) moments[c] = by_cause[c].Take();
  return moments;
}

struct Moments {
  std::vector<MomentsByCause> by_trace;
  int64_t covered = 0;
};

Moments FindMoments(const Run& run) {
  FindCriticalPath(run);  // while another thread may still make the waterfalls
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  Moments moments{std::vector<MomentsByCause>(run.traces.size())};
  std::vector<PathOfRank> paths = PathsOf(run, waterfalls);
  const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
  std::vector<int64_t> covered(paths.size());
  ForEachTraceAtOnce(run, [&](uint32_t t) {
    if (paths[t].is_empty()) return;
    covered[t] = paths[t].TakeCovered();
    moments.by_trace[t] = Borne(run.traces[t], waits[t], std::move(paths[t]));
  });
  moments.covered = std::accumulate(covered.begin(), covered.end(), int64_t{0});
  return moments;
}

const Moments& MomentsOf(const Run& run) {
  return run.memo.Get<Moments>([&run] { return FindMoments(run); });
}

}  // namespace

const std::vector<MomentsByCause>& MomentsOnCriticalPath(const Run& run) {
  return MomentsOf(run).by_trace;
}

int64_t CoveredByCriticalPath(const Run& run) { return MomentsOf(run).covered; }

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
